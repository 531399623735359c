// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"charm.land/fantasy"
	"github.com/prometheus/client_golang/prometheus"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/collector"
)

// word is a part of a reply.
var word = fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, Delta: "word"}

// measured is a model that says one word after the other, and measures what a word costs of memory once it is under
// way.
type measured struct {
	fantasy.LanguageModel
	allocations float64
}

func (m *measured) Stream(context.Context, fantasy.Call) (fantasy.StreamResponse, error) {
	return func(yield func(fantasy.StreamPart) bool) {
		yield(word) // The first part is measured by the observer.
		m.allocations = testing.AllocsPerRun(1000, func() { yield(word) })
		yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish})
	}, nil
}

// TestMeasuringAPartCostsNoMemory is about the path of every token.
func TestMeasuringAPartCostsNoMemory(t *testing.T) {
	for name, on := range map[string]bool{"untraced": false, "traced": true} {
		t.Run(name, func(t *testing.T) {
			if on {
				collector.Start(t)
			}
			tracer, err := tracing.New(t.Context(), tracing.Service{Name: "x"}, slog.New(slog.DiscardHandler))
			check.OK(t, err)
			check.Equal(t, "on", on, tracer.On())
			o := New(Options{Now: time.Now, Tracer: tracer, Metrics: telemetry.NewGenerator(prometheus.NewRegistry())})
			m := &measured{}
			words := 0
			o.SideCaller(&v1beta1.Chat{}, v1beta1.ActionWriteTitle, "").Call(t.Context(), &ModelCall{
				Target: &models.Target{Config: &v1beta1.ChatModelConfig{}, Model: m},
				Reply:  collect.NewAccumulator("", 0, nil), Show: func(parts.Part) { words++ },
			})
			check.Equal(t, "a part costs", []any{0, true}, []any{m.allocations, words >= 1000})
			tracer.Close(t.Context())
		})
	}
}

func TestLabelOfAToolIsAKnownOne(t *testing.T) {
	a := &Attempt{Caller: Caller{chat: &v1beta1.Chat{Spec: v1beta1.ChatSpec{ChatSettings: v1beta1.ChatSettings{
		MCPServers: []v1beta1.MCPServer{{Name: "tracker"}},
		Tools:      &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "tracker__mine"}}},
	}}}}}
	for name, want := range map[string]string{
		"current_time": "current_time", "tracker__list": "mcp", "tracker__mine": "client", "other__list": "client",
		"list": "client", "__": "client",
	} {
		check.Equal(t, name, want, a.toolLabel(name, name == "current_time"))
	}
}
