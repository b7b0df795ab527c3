// The benchmark of kube-scheduler as a program: what each of its folders has as a test, but with the
// configuration as a flag, so that one program runs all of them. With -changes it also says when what its files
// do to nodes and pods has come to pass: the benchmark itself does not.
package reference

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	_ "k8s.io/component-base/logs/json/register"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/ktesting"
)

var (
	config  = flag.String("config", "performance-config.yaml", "the benchmark's configuration")
	changes = flag.String("changes", "", "file that changes of nodes and pods are written to as they come: seconds since 1970, kind, change, name, labels")
)

func TestMain(m *testing.M) {
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

func BenchmarkPerfScheduling(b *testing.B) {
	var options []perf.SchedulerPerfOption
	if *changes != "" {
		options = append(options, perf.WithPrepareFn(record))
	}
	perf.RunBenchmarkPerfScheduling(b, *config, "podyard", nil, options...)
}

// record watches nodes and pods until the workload is done.
func record(tCtx ktesting.TContext) error {
	file, err := os.Create(*changes)
	if err != nil {
		return err
	}
	told := &recorder{file: file, out: bufio.NewWriter(file), seen: map[string]string{}}
	// What is cleaned up comes last first: the watches are stopped, then it ends.
	tCtx.Cleanup(told.end)
	core := tCtx.Client().CoreV1()
	for kind, begin := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"node": core.Nodes().Watch,
		"pod":  core.Pods("").Watch,
	} {
		watcher, err := begin(tCtx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("watch %ss: %w", kind, err)
		}
		told.running.Add(1)
		go told.follow(kind, watcher)
		tCtx.Cleanup(watcher.Stop)
	}
	return nil
}

const goneBy = "gone"

type recorder struct {
	running sync.WaitGroup
	lock    sync.Mutex
	file    *os.File
	out     *bufio.Writer
	seen    map[string]string
}

func (r *recorder) follow(kind string, watcher watch.Interface) {
	defer r.running.Done()
	for event := range watcher.ResultChan() {
		now := time.Now()
		if one, ok := factsOf(event.Object); ok {
			one.gone = one.gone || event.Type == watch.Deleted
			r.tell(now, kind, one)
		}
	}
}

// tell writes a line if what a file of the benchmark can change has changed.
func (r *recorder) tell(now time.Time, kind string, one facts) {
	r.lock.Lock()
	defer r.lock.Unlock()
	key := kind + " " + one.name
	before, said, change := r.seen[key], one.said, "changed"
	switch {
	case one.gone:
		said, change = goneBy, "deleted"
	case before == "" || before == goneBy:
		change = "added"
	}
	if before == said {
		return
	}
	r.seen[key] = said
	fmt.Fprintf(r.out, "%.6f %s %s %s %s\n", float64(now.UnixMicro())/1e6, kind, change, one.name, written(one.labels))
}

func (r *recorder) end() {
	r.running.Wait()
	r.lock.Lock()
	defer r.lock.Unlock()
	r.out.Flush()
	r.file.Close()
}

// facts is what is told of an object: what the benchmark's files can say of it, and whether it is being deleted.
// Where a pod is bound to is not among it: nobody but the scheduler says that.
type facts struct {
	name   string
	labels map[string]string
	said   string
	gone   bool
}

func factsOf(object any) (facts, bool) {
	switch one := object.(type) {
	case *v1.Node:
		return facts{one.Name, one.Labels, written([]any{one.Labels, one.Spec, one.Status.Allocatable}), false}, true
	case *v1.Pod:
		spec := one.Spec.DeepCopy()
		spec.NodeName = ""
		return facts{one.Namespace + "/" + one.Name, one.Labels, written([]any{one.Labels, spec}), one.DeletionTimestamp != nil}, true
	}
	return facts{}, false
}

func written(fact any) string {
	text, err := json.Marshal(fact)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
