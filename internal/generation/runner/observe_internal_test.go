// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"log/slog"
	"testing"
	"time"

	"charm.land/fantasy"
	"github.com/prometheus/client_golang/prometheus"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/testing/collector"
)

// TestMeasuringAPartCostsNoMemory is about the path of every token.
func TestMeasuringAPartCostsNoMemory(t *testing.T) {
	for name, on := range map[string]bool{"untraced": false, "traced": true} {
		t.Run(name, func(t *testing.T) {
			if on {
				collector.Start(t)
			}
			tracer, err := tracing.New(t.Context(), tracing.Service{Name: "x"}, slog.New(slog.DiscardHandler))
			if err != nil || tracer.On() != on {
				t.Fatalf("on %v, %v", tracer.On(), err)
			}
			a := &attempt{Runner: &Runner{Options: Options{Now: time.Now, Tracer: tracer, Metrics: telemetry.NewGenerator(prometheus.NewRegistry())}}}
			a.working = t.Context()
			_, through, end := a.observeCall(t.Context(), &target{config: &v1alpha1.ChatModelConfig{}}, &fantasy.Call{}, func(*fantasy.StreamPart) {})
			part := fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, Delta: "word"}
			through(&part) // The first part is measured.
			if n := testing.AllocsPerRun(1000, func() { through(&part) }); n != 0 {
				t.Errorf("a part costs %v allocations", n)
			}
			end(nil)
			tracer.Close(t.Context())
		})
	}
}
