// The benchmark of kube-scheduler as a program: what each of its folders has as a test, but with the
// configuration as a flag, so that one program runs all of them.
package reference

import (
	"flag"
	"fmt"
	"os"
	"testing"

	_ "k8s.io/component-base/logs/json/register"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
)

var config = flag.String("config", "performance-config.yaml", "the benchmark's configuration")

func TestMain(m *testing.M) {
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

func BenchmarkPerfScheduling(b *testing.B) {
	perf.RunBenchmarkPerfScheduling(b, *config, "podyard", nil)
}
