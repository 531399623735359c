// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/chattest"
)

var now = chattest.Now

func TestTurnWithoutStartTimeRecordsNoDuration(t *testing.T) {
	chat := chattest.Generating()
	f := plan.Facts{Chat: chat, Now: now, Model: &plan.Model{Alternative: plan.Alternative{Config: "default"}},
		Result: chattest.Answer(chat, chattest.Says("Hi."))}
	f.Chat.Status.Turn.StartedAt = nil
	series := observed(t, f)
	if series["parley_turns_total"] != 1 || series["parley_turn_duration_seconds"] != 0 {
		t.Errorf("got %v", series)
	}
}

// observed lets the reconciler observe the writes, and counts the series of each metric.
func observed(t *testing.T, all ...plan.Facts) map[string]int {
	t.Helper()
	registry := prometheus.NewRegistry()
	tracer, err := tracing.New(t.Context(), tracing.Service{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{metrics: telemetry.NewManager(registry), tracer: tracer, recorder: &events.FakeRecorder{}}
	for _, f := range all {
		todo, err := plan.Advance(f)
		if err != nil {
			t.Fatal(err)
		}
		o.observe(t.Context(), &scope{facts: f}, f.Chat, &todo)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, family := range families {
		series[family.GetName()] = len(family.Metric)
	}
	return series
}

func TestMetricSeriesDoNotGrowWithChatCount(t *testing.T) {
	var all []plan.Facts
	for i := range 1000 {
		chat := chattest.In(fmt.Sprint("ns-", i), chattest.Generating())
		chat.Name, chat.UID = fmt.Sprint("chat-", i), types.UID(fmt.Sprint("uid-", i))
		all = append(all, plan.Facts{Chat: chat, Now: now,
			Model:  &plan.Model{Alternative: plan.Alternative{Config: "default", Name: fmt.Sprint("model-", i)}},
			Result: chattest.Answer(chat, chattest.Says("Hi."))})
	}
	if diff := cmp.Diff(observed(t, all[0]), observed(t, all...)); diff != "" {
		t.Error(diff)
	}
}
