// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// meter is the tool that the model calls at each step. It measures the process, and returns a long result.
type meter struct {
	mu      sync.Mutex
	samples []sample
}

// sample is what the process has used when a tool runs, which is between two calls of the model.
type sample struct {
	// heap is the live heap in bytes, after a collection.
	heap uint64
	// cpu is the CPU time of the process so far.
	cpu time.Duration
}

// Definition implements tools.Tool.
func (m *meter) Definition() tools.Definition {
	return tools.Definition{Name: "read_page", Description: "Reads the next page.",
		InputSchema: map[string]any{"type": "object", "properties": map[string]any{}}}
}

// Run implements tools.Tool.
func (m *meter) Run(context.Context, tools.Call) (string, error) {
	s := sample{heap: liveHeap(), cpu: cpuTime()}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, s)
	return strings.Repeat("All work and no play. ", resultBytes/22+1)[:resultBytes], nil
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// quarter is a fourth of the steps.
type quarter struct {
	// heap is the smallest live heap, in bytes: what is live in any case. On a busy machine, requests and events of
	// other goroutines add to others. cpu is the CPU time per step.
	heap uint64
	cpu  time.Duration
}

func (m *meter) quarters() (out [4]quarter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.samples) / len(out)
	for q := range out {
		part := m.samples[q*n : (q+1)*n]
		out[q].heap = slices.MinFunc(part, func(a, b sample) int { return cmp.Compare(a.heap, b.heap) }).heap
		out[q].cpu = (part[n-1].cpu - part[0].cpu) / time.Duration(n-1)
	}
	return out
}

// model is the scripted model. It forgets what it was asked but for the size, so that its memory does not count.
type model struct {
	*modelserver.Server
	mu    sync.Mutex
	asked []request
	// busy is the largest live heap while a request was under way, in bytes.
	busy uint64
}

type request struct {
	bytes   int64
	status  int
	summary bool
}

func startModel(t *testing.T, script modelserver.Script) (*model, string) {
	t.Helper()
	inner, err := modelserver.New(script)
	check.OK(t, err)
	m := &model{Server: inner}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return m, server.URL + "/v1"
}

// ServeHTTP implements http.Handler.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	heap := liveHeap()
	m.Server.ServeHTTP(w, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = max(m.busy, heap)
	for _, record := range m.Requests() {
		m.asked = append(m.asked, request{r.ContentLength, record.Status, record.Rule == "summary"})
	}
	forget := httptest.NewRequestWithContext(r.Context(), http.MethodDelete, "/_control/requests", nil)
	m.Server.ServeHTTP(httptest.NewRecorder(), forget)
}

func (m *model) requests() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}
