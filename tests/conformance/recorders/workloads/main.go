// Plays scripts on the workload controllers of kube-controller-manager v1.36.2, as they are, against
// client-go's object tracker, and writes what there is after each step. One script a line on stdin, one
// case a line on stdout. How it is run says README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

type chosen struct {
	Name        string
	Node        string
	Image       string
	Terminating *bool
	Started     *bool
	First       int
}

type step struct {
	Op        string
	Object    json.RawMessage
	Kind      string
	Name      string
	Pods      chosen
	Ready     *bool
	ReadyForS int64 `json:"readyForS"`
	Phase     string
	Node      string
}

type script struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	About    string `json:"about"`
	Input    struct {
		Kind  string            `json:"kind"`
		Steps []json.RawMessage `json:"steps"`
	} `json:"input"`
}

var resources = map[string]schema.GroupVersionResource{
	"Pod":                   {Version: "v1", Resource: "pods"},
	"Node":                  {Version: "v1", Resource: "nodes"},
	"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
	"ReplicationController": {Version: "v1", Resource: "replicationcontrollers"},
	"DaemonSet":             {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"StatefulSet":           {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"ControllerRevision":    {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
	"Job":                   {Group: "batch", Version: "v1", Resource: "jobs"},
	"CronJob":               {Group: "batch", Version: "v1", Resource: "cronjobs"},
}

type stage struct {
	client *fake.Clientset
	count  atomic.Int64
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (s *stage) made(object metav1.Object) {
	number := s.count.Add(1)
	if object.GetName() == "" {
		object.SetName(fmt.Sprintf("%s%05d", object.GetGenerateName(), number))
	}
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", number)))
	object.SetCreationTimestamp(metav1.Now())
	object.SetGeneration(1)
	s.write(object)
}

// write gives an object the version by which informers know that it is another one.
func (s *stage) write(object metav1.Object) {
	object.SetResourceVersion(fmt.Sprint(s.count.Add(1)))
}

func (s *stage) update(resource schema.GroupVersionResource, object runtime.Object, namespace string) {
	accessor, err := meta.Accessor(object)
	must(err)
	s.write(accessor)
	must(s.client.Tracker().Update(resource, object, namespace))
}

func begin(kind string) *stage {
	s := &stage{client: fake.NewSimpleClientset()}
	s.client.PrependReactor("create", "*", func(action core.Action) (bool, runtime.Object, error) {
		object := action.(core.CreateAction).GetObject()
		accessor, err := meta.Accessor(object)
		must(err)
		if accessor.GetUID() == "" {
			s.made(accessor)
		}
		if pod, is := object.(*v1.Pod); is {
			pod.Status.Phase = v1.PodPending
		}
		return false, nil, nil
	})
	s.client.PrependReactor("update", "*", func(action core.Action) (bool, runtime.Object, error) {
		accessor, err := meta.Accessor(action.(core.UpdateAction).GetObject())
		must(err)
		resource := action.GetResource()
		found, err := s.client.Tracker().Get(resource, action.GetNamespace(), accessor.GetName())
		if err != nil {
			return true, nil, err
		}
		stored, _ := meta.Accessor(found)
		if given := accessor.GetResourceVersion(); given != "" && given != stored.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(resource.GroupResource(), accessor.GetName(), errors.New("it has changed"))
		}
		s.write(accessor)
		return false, nil, nil
	})
	s.client.PrependReactor("delete", "pods", func(action core.Action) (bool, runtime.Object, error) {
		name := action.(core.DeleteAction).GetName()
		found, err := s.client.Tracker().Get(resources["Pod"], "default", name)
		if err != nil {
			return true, nil, err
		}
		return s.leave(found.(*v1.Pod)), nil, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	factory := informers.NewSharedInformerFactory(s.client, 0)
	run := s.controller(ctx, kind, factory)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	s.done.Add(1)
	go func() { defer s.done.Done(); run() }()
	return s
}

// leave begins the end of a pod that a node has, and says whether that is all there is to do.
func (s *stage) leave(pod *v1.Pod) bool {
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded {
		return false
	}
	if pod.DeletionTimestamp == nil {
		changed := pod.DeepCopy()
		now := metav1.Now()
		changed.DeletionTimestamp = &now
		s.update(resources["Pod"], changed, "default")
	}
	return true
}

func (s *stage) controller(ctx context.Context, kind string, factory informers.SharedInformerFactory) func() {
	corev1, appsv1, batchv1 := factory.Core().V1(), factory.Apps().V1(), factory.Batch().V1()
	switch kind {
	case "DaemonSet":
		made, err := daemon.NewDaemonSetsController(ctx, appsv1.DaemonSets(), appsv1.ControllerRevisions(), corev1.Pods(),
			corev1.Nodes(), s.client, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
		must(err)
		return func() { made.Run(ctx, 2) }
	case "StatefulSet":
		made := statefulset.NewStatefulSetController(ctx, corev1.Pods(), appsv1.StatefulSets(),
			corev1.PersistentVolumeClaims(), appsv1.ControllerRevisions(), s.client)
		return func() { made.Run(ctx, 2) }
	case "ReplicationController":
		made := replication.NewReplicationManager(ctx, corev1.Pods(), corev1.ReplicationControllers(), s.client, 500)
		return func() { made.Run(ctx, 2) }
	case "CronJob":
		made, err := cronjob.NewControllerV2(ctx, batchv1.Jobs(), batchv1.CronJobs(), s.client)
		must(err)
		return func() { made.Run(ctx, 2) }
	}
	panic("no controller of " + kind)
}

func (s *stage) settle() {
	last, since := len(s.client.Actions()), time.Now()
	for time.Since(since) < 800*time.Millisecond {
		time.Sleep(50 * time.Millisecond)
		if now := len(s.client.Actions()); now != last {
			last, since = now, time.Now()
		}
	}
}

// nudge has objects looked at once more: the controller of DaemonSets leaves it to the next change to see some
// of what nodes do, others may have seen a pod before they saw their own write. CronJobs go by the clock.
func (s *stage) nudge(kind string) {
	if kind == "CronJob" {
		return
	}
	for _, object := range s.all(kind) {
		changed := object.DeepCopyObject()
		accessor, err := meta.Accessor(changed)
		must(err)
		accessor.SetAnnotations(map[string]string{"nudged": fmt.Sprint(s.count.Load())})
		s.update(resources[kind], changed, "default")
	}
	s.settle()
}

func (s *stage) all(kind string) []runtime.Object {
	resource := resources[kind]
	namespace := "default"
	if kind == "Node" {
		namespace = ""
	}
	list, err := s.client.Tracker().List(resource, resource.GroupVersion().WithKind(kind), namespace)
	must(err)
	found, err := meta.ExtractList(list)
	must(err)
	return found
}

func (s *stage) apply(raw []byte) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	must(err)
	legacyscheme.Scheme.Default(object)
	kind := reflect.TypeOf(object).Elem().Name()
	accessor, _ := meta.Accessor(object)
	namespace := "default"
	if kind == "Node" {
		namespace = ""
	}
	accessor.SetNamespace(namespace)
	tracker, resource := s.client.Tracker(), resources[kind]
	old, err := tracker.Get(resource, namespace, accessor.GetName())
	if err != nil {
		created := accessor.GetCreationTimestamp()
		uid := accessor.GetUID()
		s.made(accessor)
		if uid != "" {
			accessor.SetUID(uid)
		}
		if !created.IsZero() {
			accessor.SetCreationTimestamp(created)
		}
		must(tracker.Create(resource, object, namespace))
		return
	}
	before, _ := meta.Accessor(old)
	accessor.SetUID(before.GetUID())
	accessor.SetCreationTimestamp(before.GetCreationTimestamp())
	accessor.SetGeneration(before.GetGeneration())
	field := func(of runtime.Object, name string) reflect.Value {
		return reflect.ValueOf(of).Elem().FieldByName(name)
	}
	if kind != "Node" && kind != "Job" && field(object, "Status").IsZero() {
		field(object, "Status").Set(field(old, "Status"))
	}
	if !reflect.DeepEqual(field(object, "Spec").Interface(), field(old, "Spec").Interface()) {
		accessor.SetGeneration(before.GetGeneration() + 1)
	}
	s.update(resource, object, namespace)
}

func target(pod *v1.Pod) string {
	found, err := daemonutil.GetTargetNodeName(pod)
	if err != nil {
		return ""
	}
	return found
}

func (s *stage) chosen(which chosen) []*v1.Pod {
	found := []*v1.Pod{}
	for _, object := range s.all("Pod") {
		pod := object.(*v1.Pod)
		started := pod.Spec.NodeName != ""
		if which.Name != "" && pod.Name != which.Name || which.Node != "" && target(pod) != which.Node ||
			which.Image != "" && pod.Spec.Containers[0].Image != which.Image ||
			which.Terminating != nil && *which.Terminating != (pod.DeletionTimestamp != nil) ||
			which.Started != nil && *which.Started != started {
			continue
		}
		found = append(found, pod.DeepCopy())
	}
	sort.Slice(found, func(i, j int) bool { return target(found[i])+found[i].Name < target(found[j])+found[j].Name })
	if which.First > 0 && len(found) > which.First {
		found = found[:which.First]
	}
	return found
}

func (s *stage) take(one step) {
	tracker := s.client.Tracker()
	switch one.Op {
	case "apply":
		s.apply(one.Object)
	case "delete":
		namespace := "default"
		if one.Kind == "Node" {
			namespace = ""
		}
		must(tracker.Delete(resources[one.Kind], namespace, one.Name))
	case "start":
		for _, pod := range s.chosen(one.Pods) {
			pod.Spec.NodeName = target(pod)
			if pod.Spec.NodeName == "" {
				pod.Spec.NodeName = "n1"
			}
			status := v1.ConditionTrue
			if one.Ready != nil && !*one.Ready {
				status = v1.ConditionFalse
			}
			since := metav1.NewTime(time.Now().Add(-time.Duration(one.ReadyForS) * time.Second))
			pod.Status.Phase = v1.PodRunning
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: status, LastTransitionTime: since}}
			s.update(resources["Pod"], pod, "default")
		}
	case "end":
		for _, pod := range s.chosen(one.Pods) {
			pod.Status.Phase = v1.PodPhase(one.Phase)
			pod.Status.Conditions = nil
			s.update(resources["Pod"], pod, "default")
		}
	case "evict":
		for _, pod := range s.chosen(one.Pods) {
			if !s.leave(pod) {
				must(tracker.Delete(resources["Pod"], "default", pod.Name))
			}
		}
	case "gone":
		for _, pod := range s.chosen(one.Pods) {
			must(tracker.Delete(resources["Pod"], "default", pod.Name))
		}
	default:
		panic("no step is called " + one.Op)
	}
}

func plain(value any) map[string]any {
	raw, err := json.Marshal(value)
	must(err)
	found := map[string]any{}
	must(json.Unmarshal(raw, &found))
	return found
}

// state is what there is, without random names and times.
func (s *stage) state(kind string) map[string]any {
	revisions := map[string]int64{}
	numbers := []int64{}
	for _, object := range s.all("ControllerRevision") {
		raw := plain(object)
		number := int64(raw["revision"].(float64))
		numbers = append(numbers, number)
		accessor, _ := meta.Accessor(object)
		revisions[accessor.GetName()] = number
		for _, label := range []string{"controller-revision-hash", "controller.kubernetes.io/hash"} {
			if hash := accessor.GetLabels()[label]; hash != "" {
				revisions[hash] = number
			}
		}
	}
	sort.Slice(numbers, func(i, j int) bool { return numbers[i] < numbers[j] })
	pods := []map[string]any{}
	for _, pod := range s.chosen(chosen{}) {
		labels := map[string]string{}
		for key, value := range pod.Labels {
			if key != "controller-revision-hash" {
				labels[key] = value
			}
		}
		raw := plain(pod)["spec"].(map[string]any)
		one := map[string]any{"labels": labels, "image": pod.Spec.Containers[0].Image, "bound": pod.Spec.NodeName != "",
			"terminating": pod.DeletionTimestamp != nil, "phase": string(pod.Status.Phase)}
		if kind != "ReplicationController" {
			one["revision"] = revisions[pod.Labels["controller-revision-hash"]]
		}
		if kind == "StatefulSet" {
			one["name"], one["hostname"], one["subdomain"] = pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain
			volumes := []string{}
			for _, volume := range pod.Spec.Volumes {
				if volume.PersistentVolumeClaim != nil {
					volumes = append(volumes, volume.Name+"="+volume.PersistentVolumeClaim.ClaimName)
				}
			}
			sort.Strings(volumes)
			one["volumes"] = volumes
		}
		if kind == "DaemonSet" {
			one["node"], one["tolerations"] = target(pod), raw["tolerations"]
			if pod.Spec.Affinity != nil {
				one["affinity"] = raw["affinity"]
			}
		}
		pods = append(pods, one)
	}
	found := map[string]any{"pods": pods, "revisions": numbers}
	if kind == "StatefulSet" {
		found["claims"] = s.claims()
	}
	if kind == "CronJob" {
		found["jobs"] = s.jobs()
	}
	for _, object := range s.all(kind) {
		raw := plain(object)
		status, _ := raw["status"].(map[string]any)
		for _, key := range []string{"currentRevision", "updateRevision"} {
			if name, is := status[key].(string); is {
				status[key] = revisions[name]
			}
		}
		if active, is := status["active"].([]any); is {
			names := []string{}
			for _, one := range active {
				names = append(names, one.(map[string]any)["name"].(string))
			}
			status["active"] = names
		}
		found["status"] = status
		spec := raw["spec"].(map[string]any)
		delete(spec, "template")
		delete(spec, "jobTemplate")
		delete(spec, "volumeClaimTemplates")
		found["spec"] = spec
	}
	return found
}

func owners(references []metav1.OwnerReference) []string {
	found := []string{}
	for _, one := range references {
		found = append(found, fmt.Sprintf("%s/%s/%v", one.Kind, one.Name, one.Controller != nil && *one.Controller))
	}
	sort.Strings(found)
	return found
}

func (s *stage) claims() []map[string]any {
	found := []map[string]any{}
	for _, object := range s.all("PersistentVolumeClaim") {
		claim := object.(*v1.PersistentVolumeClaim)
		found = append(found, map[string]any{"name": claim.Name, "labels": claim.Labels, "owners": owners(claim.OwnerReferences)})
	}
	sort.Slice(found, func(i, j int) bool { return found[i]["name"].(string) < found[j]["name"].(string) })
	return found
}

func (s *stage) jobs() []map[string]any {
	found := []map[string]any{}
	for _, object := range s.all("Job") {
		accessor, _ := meta.Accessor(object)
		found = append(found, map[string]any{"name": accessor.GetName(), "labels": accessor.GetLabels(),
			"annotations": accessor.GetAnnotations(), "owners": owners(accessor.GetOwnerReferences())})
	}
	sort.Slice(found, func(i, j int) bool { return found[i]["name"].(string) < found[j]["name"].(string) })
	return found
}

func play(line []byte) []byte {
	read := script{}
	must(json.Unmarshal(line, &read))
	// Times of a script are seconds from now on, in quotes: "<now-300>".
	now := time.Now().Truncate(time.Second)
	steps, states := []json.RawMessage{}, []any{}
	s := begin(read.Input.Kind)
	for _, raw := range read.Input.Steps {
		raw = withTimes(raw, now)
		steps = append(steps, raw)
		several := []step{}
		must(json.Unmarshal(raw, &several))
		for _, one := range several {
			s.take(one)
		}
		s.settle()
		s.nudge(read.Input.Kind)
		states = append(states, s.state(read.Input.Kind))
	}
	s.cancel()
	written, err := json.Marshal(map[string]any{"id": read.ID, "category": read.Category, "about": read.About,
		"input":    map[string]any{"kind": read.Input.Kind, "now": now.Unix(), "steps": steps},
		"expected": states})
	must(err)
	return written
}

func withTimes(raw []byte, now time.Time) []byte {
	text := string(raw)
	for {
		at := strings.Index(text, "\"<now-")
		if at < 0 {
			return []byte(text)
		}
		end := at + strings.Index(text[at:], ">\"")
		seconds := 0
		fmt.Sscanf(text[at+6:end], "%d", &seconds)
		stamp := now.Add(-time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
		text = text[:at] + "\"" + stamp + text[end+1:]
	}
}

func main() {
	lines := [][]byte{}
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines = append(lines, append([]byte{}, scanner.Bytes()...))
	}
	answers := make([][]byte, len(lines))
	next := make(chan int)
	var workers sync.WaitGroup
	for range 10 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for at := range next {
				answers[at] = play(lines[at])
			}
		}()
	}
	for at := range lines {
		next <- at
	}
	close(next)
	workers.Wait()
	for _, answer := range answers {
		fmt.Println(string(answer))
	}
}
