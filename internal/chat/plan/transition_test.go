// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// answers gives the attempt under way a result that was there a second ago.
func answers(f *Facts, replies ...chattest.Reply) {
	f.Result = chattest.Answer(f.Chat, append(replies, chattest.Took(9*time.Second))...)
}

// compacting makes the attempt one that summarises.
func compacting(f *Facts) {
	f.Chat.Status.Generation.Action, f.Chat.Status.Internal.Compaction = v1beta1.ActionCompact,
		v1beta1.CompactionThreshold
}

// said is what the transitions of a plan say, in short.
type said struct {
	Began, Ended       []string
	Steps              int32 // of the turn that ended last
	Outcome, Reason    string
	Committed          bool
	Assigned, Finished time.Duration
	Capacity           time.Duration
	Clients            int
	Answered           bool
	Retried            string
}

func short(p Plan) (s said) {
	for _, t := range p.Transitions {
		if t.Began != nil {
			s.Began = append(s.Began, t.Began.Message)
		}
		if e := t.Ended; e != nil {
			s.Steps = e.Turn.Steps
			s.Ended = append(s.Ended, strings.Join([]string{e.Turn.Message, string(e.Turn.Result), string(e.Reason)}, " "))
		}
		if c := t.ClientCalls; c != nil {
			s.Clients, s.Answered = s.Clients+c.Number, c.Answered
		}
		if a := t.Attempt; a != nil {
			s.attempt(a)
		}
	}
	if p.CapacityWait != nil {
		s.Capacity = *p.CapacityWait
	}
	return s
}

func (s *said) attempt(a *AttemptEnd) {
	s.Outcome, s.Reason, s.Committed = string(a.Outcome), string(a.Reason), a.Committed
	if a.Outcome == "" {
		s.Outcome = "nobody waits"
	}
	if a.Committed {
		s.Assigned, s.Finished = now.Sub(a.Assigned), now.Sub(a.Finished)
	}
	if a.Retried {
		s.Retried = a.Provider
	}
}

func TestATransitionSaysWhatItDid(t *testing.T) {
	completed := said{Outcome: "Completed", Committed: true, Assigned: 10 * time.Second, Finished: time.Second}
	with := func(s said, change func(*said)) said { change(&s); return s }
	for name, c := range map[string]struct {
		change func(*Facts)
		want   said
	}{
		"nothing": {func(*Facts) {}, said{}},
		"an answer": {func(f *Facts) { answers(f, chattest.Says("hi")) },
			with(completed, func(s *said) { s.Ended, s.Steps = []string{"a Answered "}, 1 })},
		"an answer and a next turn": {func(f *Facts) {
			answers(f, chattest.Says("hi"))
			f.Chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "b"}}
			f.Queued = []Message{{Name: "b"}}
		}, with(completed, func(s *said) { s.Ended, s.Steps, s.Began = []string{"a Answered "}, 1, []string{"b"} })},
		"a failure": {func(f *Facts) { answers(f, chattest.Fails(v1beta1.ErrorOverloaded)) },
			said{Outcome: "Failed", Reason: "Overloaded", Ended: []string{"a Failed Overloaded"}}},
		"a failure that may pass": {func(f *Facts) {
			answers(f, chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow, chattest.Of("openai")))
		}, said{Outcome: "Failed", Reason: "Overloaded", Retried: "openai"}},
		"a failure that another model knows nothing of": {func(f *Facts) {
			answers(f, chattest.Fails(v1beta1.ErrorAuthenticationFailed, chattest.Of("openai")))
			f.Chat.Status.Generation.ModelConfig = "default"
			f.Model.Fallbacks = []Alternative{{Config: "other"}}
		}, said{Outcome: "Failed", Reason: "AuthenticationFailed", Retried: "openai"}},
		"a summary": {func(f *Facts) {
			compacting(f)
			answers(f, chattest.Compacts("They spoke.", chattest.From(2)))
		}, completed},
		"a summary that fails": {func(f *Facts) {
			compacting(f)
			answers(f, chattest.Fails(v1beta1.ErrorRequestRejected))
		}, said{Outcome: "Failed", Reason: "RequestRejected", Ended: []string{"a Failed RequestRejected"}}},
		"a summary that is interrupted": {func(f *Facts) {
			compacting(f)
			f.Chat.Status.Phase, f.Chat.Status.Generation.InterruptedAt = v1beta1.ChatInterrupting, chattest.Ago(time.Second)
			answers(f, chattest.Interrupted())
		}, said{Outcome: "Interrupted", Ended: []string{"a Interrupted "}}},
		"a lost pod": {func(f *Facts) { f.PodLost = true }, said{Outcome: "Lost"}},
		"a lost pod for the last time": {func(f *Facts) {
			f.PodLost, f.Chat.Status.Generation.Attempt = true, v1beta1.DefaultMaxAttempts
		}, said{Outcome: "Lost", Ended: []string{"a Failed AttemptsExhausted"}}},
		"an edit": {func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: "a"}, Commit: v1beta1.CommittedMessage{Position: 2}}
		}, said{Outcome: "nobody waits", Began: []string{"a"}, Ended: []string{"a  "}}},
		"an edit that an answer is too late for": {func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: "a"}, Commit: v1beta1.CommittedMessage{Position: 2}}
			answers(f, chattest.Says("hi"))
		}, said{Outcome: "nobody waits", Began: []string{"a"}, Ended: []string{"a  "}}},
		"a deletion that brings an older turn back": {func(f *Facts) {
			f.Truncated = &Truncated{Head: "z", Length: 2, Turn: TurnRecord{
				&v1beta1.TurnStatus{Message: "y", HistoryVersion: 1, Result: v1beta1.TurnAnswered},
				v1beta1.TurnInternalStatus{LastRole: v1beta1.RoleAssistant}}}
		}, said{Outcome: "nobody waits", Ended: []string{"a  "}}},
		"a deleted reply that is made again": {func(f *Facts) {
			f.Truncated = &Truncated{Head: "a", Length: 3, Unanswered: true,
				Turn: TurnRecord{&v1beta1.TurnStatus{Message: "a", HistoryVersion: 3},
					v1beta1.TurnInternalStatus{LastRole: v1beta1.RoleUser}}}
		}, said{Outcome: "nobody waits", Ended: []string{"a  "}}},
		"an interruption with a partial reply": {func(f *Facts) {
			f.Chat.Status.Phase, f.Chat.Status.Generation.InterruptedAt = v1beta1.ChatInterrupting, chattest.Ago(time.Second)
			answers(f, chattest.Says("Half a"), chattest.Interrupted())
		}, with(completed, func(s *said) { s.Outcome, s.Ended, s.Steps = "Interrupted", []string{"a Interrupted "}, 1 })},
		"an interruption whose pod is lost": {func(f *Facts) {
			f.Chat.Status.Phase, f.Chat.Status.Generation.InterruptedAt = v1beta1.ChatInterrupting, chattest.Ago(time.Second)
			f.PodLost = true
		}, said{Outcome: "Lost", Ended: []string{"a Interrupted "}}},
		"an interruption without one": {func(f *Facts) {
			f.Chat.Status.Phase, f.Chat.Status.Generation.InterruptedAt = v1beta1.ChatInterrupting, chattest.Ago(time.Minute)
		}, said{Outcome: "nobody waits", Ended: []string{"a Interrupted "}}},
		"a place after a wait": {func(f *Facts) {
			f.Chat.Status.Generation, f.Chat.Status.WaitingSince = nil, chattest.Ago(5*time.Second)
		}, said{Capacity: 5 * time.Second}},
		"calls that nobody answered": {func(f *Facts) {
			f.Chat.Status.Phase, f.Chat.Status.Generation = v1beta1.ChatRequiresAction, nil
			f.Chat.Status.Internal.Turn = v1beta1.TurnInternalStatus{PendingCalls: 2, CallsRequiringAction: 2,
				LastRole: v1beta1.RoleAssistant}
			f.Chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{Deadline: metav1.NewTime(now),
				ToolCalls: []v1beta1.PendingToolCall{
					{ID: "1", Kind: v1beta1.RequiresClient}, {ID: "2", Kind: v1beta1.RequiresApproval},
				}}
		}, said{Clients: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Chat: chattest.Generating(), Now: now,
				Model: &Model{Alternative: Alternative{Config: "default", Name: "m"}}}
			c.change(&f)
			todo := (&world{t: t, f: f}).decide()
			if diff := cmp.Diff(c.want, short(todo), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			// The next pass does not say it again.
			again := Facts{Chat: chattest.Generating(), Now: now.Add(time.Second), Model: f.Model}
			again.Chat.Status = todo.Status
			if again.Chat.Status.Generation != nil {
				again.Chat.Status.Generation.Pod = "pod"
			}
			next := (&world{t: t, f: again}).decide()
			if diff := cmp.Diff(said{}, short(next), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the next pass says %s", diff)
			}
		})
	}
}
