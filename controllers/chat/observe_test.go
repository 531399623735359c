// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(-d))) }

// busy is a chat that generates the answer to message a.
func busy() *v1alpha1.Chat {
	return &v1alpha1.Chat{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid"},
		Status: v1alpha1.ChatStatus{
			Phase: v1alpha1.ChatRunning, History: v1alpha1.HistoryStatus{Version: 3, Head: "a", Length: 3},
			Turn: &v1alpha1.TurnStatus{Message: "a", Index: 2, HistoryVersion: 3, StartedAt: ago(time.Minute)},
			Generation: &v1alpha1.GenerationStatus{Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: "pod",
				StartedAt: *ago(10 * time.Second)},
		},
	}
}

func resultIs(outcome v1alpha1.GenerationOutcome, reason v1alpha1.ErrorReason) *v1alpha1.ChatMessage {
	m := &v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "c-3-1"}}
	m.Spec.Role, m.Spec.Parent = v1alpha1.RoleAssistant, "a"
	m.Spec.Generation = &v1alpha1.MessageGeneration{
		ChatUID: "uid", HistoryVersion: 3, Attempt: 1, Pod: "pod", Action: v1alpha1.ActionGenerateAssistant, Outcome: outcome,
		FinishedAt: *ago(time.Second),
	}
	if reason != "" {
		m.Spec.Generation.Error = &v1alpha1.GenerationError{Reason: reason}
	}
	return m
}

func TestATurnOfBeforeAnUpgradeHasNoDuration(t *testing.T) {
	f := plan.Facts{Chat: busy(), Now: now, Model: &plan.Model{Alternative: plan.Alternative{Config: "default"}},
		Result: resultIs(v1alpha1.OutcomeCompleted, "")}
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

func TestAThousandChatsMakeNoMoreSeriesThanOne(t *testing.T) {
	var all []plan.Facts
	for i := range 1000 {
		f := plan.Facts{Chat: busy(), Now: now,
			Model:  &plan.Model{Alternative: plan.Alternative{Config: "default", Name: fmt.Sprint("model-", i)}},
			Result: resultIs(v1alpha1.OutcomeCompleted, "")}
		f.Chat.Name, f.Chat.Namespace, f.Chat.UID = fmt.Sprint("chat-", i), fmt.Sprint("ns-", i),
			types.UID(fmt.Sprint("uid-", i))
		f.Result.Spec.Generation.ChatUID = string(f.Chat.UID)
		all = append(all, f)
	}
	if diff := cmp.Diff(observed(t, all[0]), observed(t, all...)); diff != "" {
		t.Error(diff)
	}
}
