// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testmanager"
)

// managerVariable names the kubeconfig of the cluster before which this program is to be the manager, and no test.
const managerVariable = "PARLEY_TEST_MEMORY_MANAGER"

// report is what the manager says of itself once it has looked at everything.
type report struct {
	// Synced is how long after the start the caches held everything, and Done how long until all had been looked at.
	Synced, Done time.Duration
	// Heap is the live heap after a collection, RSS the resident memory when the rest has been returned, and Peak the most
	// that it was, in bytes.
	Heap, RSS, Peak int64
	// CPU is the CPU time that it had used by then.
	CPU time.Duration
	// Reads are requests to get or list single objects, and Writes those that change something.
	Reads, Writes int64
}

// beManager runs the controllers, and reports on each line of its input, until there is none any more.
func beManager(config string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", config)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	var synced, reads, writes atomic.Int64
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counter{next, &reads, &writes} })
	began := time.Now()
	stop, err := testmanager.Start(context.Background(), cfg, func(o *testmanager.Options) {
		o.Controllers.Workers = 16 // As many as the program has by default.
		o.Prepare = func(mgr ctrl.Manager) error {
			return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				if mgr.GetCache().WaitForCacheSync(ctx) {
					synced.Store(int64(time.Since(began)))
				}
				return nil
			}))
		}
	})
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		var r report
		if r.Done, err = settled(began, &synced); err != nil {
			return err
		}
		r.Synced, r.Reads, r.Writes = time.Duration(synced.Load()), reads.Load(), writes.Load()
		if err := r.measure(); err != nil {
			return err
		}
		if err := out.Encode(r); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	return stop()
}

// counter counts the requests of a manager. Those that watch fill its caches.
type counter struct {
	next          http.RoundTripper
	reads, writes *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method != http.MethodGet:
		c.writes.Add(1)
	case strings.Contains(r.URL.Path, "/namespaces/"):
		c.reads.Add(1)
	}
	return c.next.RoundTrip(r)
}

const (
	// look is how often the manager looks at its queues, and quiet how many looks in a row must find them empty.
	look  = 100 * time.Millisecond
	quiet = 5
)

// settled waits until nothing waits to be reconciled, and says how long after the start of the manager that was.
func settled(began time.Time, synced *atomic.Int64) (done time.Duration, err error) {
	looks := time.NewTicker(look)
	defer looks.Stop()
	for empty := 0; empty < quiet; <-looks.C {
		n, err := queued()
		if err != nil {
			return 0, err
		}
		if empty++; n > 0 || synced.Load() == 0 {
			empty = 0
		}
		if empty <= 1 {
			done = time.Since(began)
		}
	}
	return done, nil
}

// queued adds up the lengths of the work queues and the reconciles under way.
func queued() (sum float64, err error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("gathering metrics: %w", err)
	}
	for _, family := range families {
		if name := family.GetName(); name != "workqueue_depth" && name != "controller_runtime_active_workers" {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetGauge().GetValue()
		}
	}
	return sum, nil
}

func (r *report) measure() error {
	status, err := os.ReadFile("/proc/self/status") // The peak is that before this collection.
	if err != nil {
		return fmt.Errorf("reading the memory: %w", err)
	}
	r.Peak = memory(string(status), "VmHWM:")
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return fmt.Errorf("reading the CPU time: %w", err)
	}
	r.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	runtime.GC()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	r.Heap = int64(stats.HeapAlloc)
	if status, err = os.ReadFile("/proc/self/status"); err != nil {
		return fmt.Errorf("reading the memory: %w", err)
	}
	r.RSS = memory(string(status), "VmRSS:")
	return nil
}

// memory is what a line of /proc/self/status says, in bytes.
func memory(status, line string) (bytes int64) {
	_, rest, _ := strings.Cut(status, line)
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes << 10
}

// managerProcess is a manager in a process of its own.
type managerProcess struct {
	began time.Time

	t       testing.TB
	program *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Scanner
}

func startManager(t testing.TB) *managerProcess {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	check.OK(t, cluster.WriteKubeconfig(config))
	program := exec.CommandContext(context.Background(), os.Args[0])
	program.Env = append(os.Environ(), managerVariable+"="+config, "GOGC=100") // As in the cluster, not as in tests.
	program.Stderr = os.Stderr
	ask, err := program.StdinPipe()
	check.OK(t, err)
	answers, err := program.StdoutPipe()
	check.OK(t, err)
	m := &managerProcess{t: t, program: program, ask: ask, answers: bufio.NewScanner(answers), began: time.Now()}
	check.OK(t, program.Start())
	t.Cleanup(m.stop)
	return m
}

// settle waits until the manager has looked at everything, and returns what it says of itself.
func (m *managerProcess) settle() (r report) {
	m.t.Helper()
	if _, err := fmt.Fprintln(m.ask); err != nil {
		m.t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = m.program.Process.Kill() })
	defer late.Stop()
	if !m.answers.Scan() {
		m.t.Fatal("the manager says nothing:", m.answers.Err())
	}
	if err := json.Unmarshal(m.answers.Bytes(), &r); err != nil {
		m.t.Fatal(err)
	}
	return r
}

// stop ends the manager, and waits until it has.
func (m *managerProcess) stop() {
	_ = m.program.Process.Kill()
	_ = m.program.Wait() // It was killed.
}
