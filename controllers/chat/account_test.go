// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/turn"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(-d))) }

// busy is a chat that generates the answer to message a.
func busy() *v1alpha1.Chat {
	return &v1alpha1.Chat{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid"},
		Status: v1alpha1.ChatStatus{
			Phase: v1alpha1.ChatRunning, History: v1alpha1.HistoryStatus{Version: 3, Head: "a", Length: 3},
			Turn:       &v1alpha1.TurnStatus{Message: "a", Index: 2, HistoryVersion: 3, StartedAt: ago(time.Minute)},
			Generation: &v1alpha1.GenerationStatus{Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: "pod", StartedAt: *ago(10 * time.Second)},
		},
	}
}

func resultIs(outcome v1alpha1.GenerationOutcome, reason v1alpha1.ErrorReason) *v1alpha1.ChatMessage {
	m := &v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "c-3-1"}}
	m.Spec.Role, m.Spec.Parent = v1alpha1.RoleAssistant, "a"
	m.Spec.Generation = &v1alpha1.MessageGeneration{
		ChatUID: "uid", HistoryVersion: 3, Attempt: 1, Pod: "pod", Action: v1alpha1.ActionGenerateAssistant, Outcome: outcome, FinishedAt: *ago(time.Second),
	}
	if reason != "" {
		m.Spec.Generation.Error = &v1alpha1.GenerationError{Reason: reason}
	}
	return m
}

// compacting makes the attempt one that summarises, and its result a summary.
func compacting(f *turn.Facts) {
	f.Chat.Status.Generation.Action, f.Chat.Status.Compaction = v1alpha1.ActionCompact, v1alpha1.CompactionThreshold
	f.Result = resultIs(v1alpha1.OutcomeCompleted, "")
	f.Result.Spec.Role, f.Result.Spec.Generation.Action = v1alpha1.RoleSystem, v1alpha1.ActionCompact
}

// said is what an account says, in short.
type said struct {
	Began, Ended        []string
	Outcome, Reason     string
	Committed           bool
	Assigned, Finished  time.Duration
	Capacity            time.Duration
	Clients             int
	ClientOutcome       string
	Retried, Compaction string
}

func short(a account) said {
	s := said{Outcome: a.outcome, Reason: a.reason, Committed: a.committed, Assigned: a.assigned, Finished: a.finished, Clients: a.clientCalls, ClientOutcome: a.clientOutcome}
	s.Compaction = a.compaction
	if a.retried {
		s.Retried = a.provider
	}
	for _, t := range a.began {
		s.Began = append(s.Began, t.Message)
	}
	for _, t := range a.ended {
		s.Ended = append(s.Ended, t.Message+" "+t.result+" "+t.reason)
	}
	if a.capacityWait != nil {
		s.Capacity = *a.capacityWait
	}
	return s
}

// TestAWriteIsCountedByWhatItChanges lets package turn decide, so that the accounts are of writes that there are.
func TestAWriteIsCountedByWhatItChanges(t *testing.T) {
	completed := said{Outcome: "Completed", Committed: true, Assigned: 10 * time.Second, Finished: time.Second}
	with := func(s said, change func(*said)) said { change(&s); return s }
	for name, c := range map[string]struct {
		change func(*turn.Facts)
		want   said
	}{
		"nothing": {func(*turn.Facts) {}, said{}},
		"an answer": {func(f *turn.Facts) { f.Result = resultIs(v1alpha1.OutcomeCompleted, "") },
			with(completed, func(s *said) { s.Ended = []string{"a Answered "} })},
		"an answer and a next turn": {func(f *turn.Facts) {
			f.Result = resultIs(v1alpha1.OutcomeCompleted, "")
			f.Chat.Status.Queue = []v1alpha1.QueuedMessage{{Name: "b"}}
			f.Queued = []turn.Message{{Name: "b"}}
		}, with(completed, func(s *said) { s.Ended, s.Began = []string{"a Answered "}, []string{"b"} })},
		"a failure": {func(f *turn.Facts) { f.Result = resultIs(v1alpha1.OutcomeFailed, v1alpha1.ErrorOverloaded) },
			said{Outcome: "Failed", Reason: "Overloaded", Ended: []string{"a Failed Overloaded"}}},
		"a failure that may pass": {func(f *turn.Facts) {
			f.Result = resultIs(v1alpha1.OutcomeFailed, v1alpha1.ErrorOverloaded)
			f.Result.Spec.Generation.Error.Retryable, f.Result.Spec.Generation.Error.Provider = true, "openai"
		}, said{Outcome: "Failed", Reason: "Overloaded", Retried: "openai"}},
		"a failure that another model knows nothing of": {func(f *turn.Facts) {
			f.Result = resultIs(v1alpha1.OutcomeFailed, v1alpha1.ErrorAuthenticationFailed)
			f.Result.Spec.Generation.Error.Provider = "openai"
			f.Chat.Status.Generation.ModelConfig = "default"
			f.Model.Fallbacks = []turn.Alternative{{Config: "other"}}
		}, said{Outcome: "Failed", Reason: "AuthenticationFailed", Retried: "openai"}},
		"a summary": {func(f *turn.Facts) {
			compacting(f)
			f.Result.Spec.Generation.Compaction = &v1alpha1.CompactionAccount{ContextStart: 2}
		}, with(completed, func(s *said) { s.Compaction = "success" })},
		"a summary that fails": {func(f *turn.Facts) {
			compacting(f)
			f.Result = resultIs(v1alpha1.OutcomeFailed, v1alpha1.ErrorRequestRejected)
			f.Result.Spec.Generation.Action = v1alpha1.ActionCompact
		}, said{Outcome: "Failed", Reason: "RequestRejected", Compaction: "error", Ended: []string{"a Failed RequestRejected"}}},
		"a summary that is interrupted": {func(f *turn.Facts) {
			compacting(f)
			f.Chat.Status.Phase, f.Chat.Status.Generation.InterruptedAt = v1alpha1.ChatInterrupting, ago(time.Second)
			f.Result.Spec.Generation.Outcome = v1alpha1.OutcomeInterrupted
		}, said{Outcome: "Interrupted", Compaction: "cancelled", Ended: []string{"a Interrupted "}}},
		"a lost pod": {func(f *turn.Facts) { f.PodLost = true }, said{Outcome: "Lost"}},
		"a lost pod for the last time": {func(f *turn.Facts) {
			f.PodLost, f.Chat.Status.Generation.Attempt = true, v1alpha1.DefaultMaxAttempts
		}, said{Outcome: "Lost", Ended: []string{"a Failed AttemptsExhausted"}}},
		"an edit": {func(f *turn.Facts) {
			f.Edited = &turn.Edited{Message: turn.Message{Name: "a"}, Index: 2}
		}, said{Outcome: "Abandoned", Began: []string{"a"}, Ended: []string{"a Superseded "}}},
		"an edit that an answer is too late for": {func(f *turn.Facts) {
			f.Edited, f.Result = &turn.Edited{Message: turn.Message{Name: "a"}, Index: 2}, resultIs(v1alpha1.OutcomeCompleted, "")
		}, said{Outcome: "Abandoned", Began: []string{"a"}, Ended: []string{"a Superseded "}}},
		"a deletion that brings an older turn back": {func(f *turn.Facts) {
			f.Truncated = &turn.Truncated{Head: "z", Length: 2, Turn: &v1alpha1.TurnStatus{Message: "y", HistoryVersion: 1, Result: v1alpha1.TurnAnswered, LastRole: v1alpha1.RoleAssistant}}
		}, said{Outcome: "Abandoned", Ended: []string{"a Superseded "}}},
		"a deleted reply that is made again": {func(f *turn.Facts) {
			f.Truncated = &turn.Truncated{Head: "a", Length: 3, Unanswered: true, Turn: &v1alpha1.TurnStatus{Message: "a", HistoryVersion: 3, LastRole: v1alpha1.RoleUser}}
		}, said{Outcome: "Abandoned", Began: []string{"a"}, Ended: []string{"a Superseded "}}},
		"an interruption with a partial reply": {func(f *turn.Facts) {
			f.Chat.Status.Phase, f.Chat.Status.Generation.InterruptedAt = v1alpha1.ChatInterrupting, ago(time.Second)
			f.Result = resultIs(v1alpha1.OutcomeInterrupted, "")
			f.Result.Spec.Parts = make([]v1alpha1.MessagePart, 1)
		}, with(completed, func(s *said) { s.Outcome, s.Ended = "Interrupted", []string{"a Interrupted "} })},
		"an interruption without one": {func(f *turn.Facts) {
			f.Chat.Status.Phase, f.Chat.Status.Generation.InterruptedAt = v1alpha1.ChatInterrupting, ago(time.Minute)
		}, said{Outcome: "Abandoned", Ended: []string{"a Interrupted "}}},
		"a place after a wait": {func(f *turn.Facts) {
			f.Chat.Status.Generation, f.Chat.Status.WaitingSince = nil, ago(5*time.Second)
		}, said{Capacity: 5 * time.Second}},
		"calls that nobody answered": {func(f *turn.Facts) {
			f.Chat.Status.Phase, f.Chat.Status.Generation = v1alpha1.ChatRequiresAction, nil
			f.Chat.Status.Turn.PendingCalls, f.Chat.Status.Turn.AwaitingCalls, f.Chat.Status.Turn.LastRole = 2, 2, v1alpha1.RoleAssistant
			f.Chat.Status.RequiresAction = &v1alpha1.RequiresActionStatus{Deadline: metav1.NewTime(now), ToolCalls: []v1alpha1.PendingToolCall{
				{ID: "1", Kind: v1alpha1.AwaitsClient}, {ID: "2", Kind: v1alpha1.AwaitsApproval},
			}}
		}, said{Clients: 1, ClientOutcome: "Cancelled"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := turn.Facts{Chat: busy(), Now: now, Model: &turn.Model{Alternative: turn.Alternative{Config: "default", Name: "m"}}}
			c.change(&f)
			plan, err := turn.Advance(f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, short(accountOf(&f, &plan)), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			// What the write said is counted, and not again by the next pass.
			again := turn.Facts{Chat: busy(), Now: now.Add(time.Second), Model: f.Model}
			again.Chat.Status = plan.Status
			if again.Chat.Status.Generation != nil {
				again.Chat.Status.Generation.Pod = "pod"
			}
			next, err := turn.Advance(again)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(said{}, short(accountOf(&again, &next)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the next pass counts %s", diff)
			}
		})
	}
}

func TestATurnOfBeforeAnUpgradeHasNoDuration(t *testing.T) {
	f := turn.Facts{Chat: busy(), Now: now, Model: &turn.Model{Alternative: turn.Alternative{Config: "default"}}, Result: resultIs(v1alpha1.OutcomeCompleted, "")}
	f.Chat.Status.Turn.StartedAt = nil
	series := observed(t, f)
	if series["parley_turns_total"] != 1 || series["parley_turn_duration_seconds"] != 0 {
		t.Errorf("got %v", series)
	}
}

// observed lets the reconciler observe the writes, and counts the series of each metric.
func observed(t *testing.T, all ...turn.Facts) map[string]int {
	t.Helper()
	registry := prometheus.NewRegistry()
	tracer, err := tracing.New(t.Context(), tracing.Service{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Metrics: telemetry.NewManager(registry), Tracer: tracer}
	for _, f := range all {
		plan, err := turn.Advance(f)
		if err != nil {
			t.Fatal(err)
		}
		r.observe(t.Context(), &seen{facts: f}, &plan)
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
	var all []turn.Facts
	for i := range 1000 {
		f := turn.Facts{Chat: busy(), Now: now, Model: &turn.Model{Alternative: turn.Alternative{Config: "default", Name: fmt.Sprint("model-", i)}}, Result: resultIs(v1alpha1.OutcomeCompleted, "")}
		f.Chat.Name, f.Chat.Namespace, f.Chat.UID = fmt.Sprint("chat-", i), fmt.Sprint("ns-", i), types.UID(fmt.Sprint("uid-", i))
		f.Result.Spec.Generation.ChatUID = string(f.Chat.UID)
		all = append(all, f)
	}
	if diff := cmp.Diff(observed(t, all[0]), observed(t, all...)); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyATraceContextIsTakenForOne(t *testing.T) {
	m := &v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationTraceparent: "nonsense"}}}
	if got := traceparentOf(m); got != "" {
		t.Errorf("got %q", got)
	}
}
