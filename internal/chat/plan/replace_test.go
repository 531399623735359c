// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// allOfATurn is a memory of a turn in which everything is remembered that can be.
func allOfATurn() v1beta1.TurnInternalStatus {
	return v1beta1.TurnInternalStatus{
		ResumedVersion: 1, ContentHash: "h", MessageUID: "u", CallsCanceledReasonBefore: v1beta1.CallsFailed,
		LastRole:       v1beta1.RoleAssistant,
		CallingMessage: "c", AskingMessage: "d", PendingCalls: 2, CallsRequiringAction: 1, NeedsWorkspace: true,
		ReplyOutcome: v1beta1.ReplyPaused, Pauses: 1, InvalidOutputs: 1,
		Decisions: []v1beta1.ToolDecision{{ID: "1"}}, Results: &v1beta1.ClientResults{Message: "r"},
	}
}

// allOfAnAttempt is the same of attempts.
func allOfAnAttempt() v1beta1.AttemptInternalStatus {
	return v1beta1.AttemptInternalStatus{
		LostAttempts: 1, ExcludedModels: []string{"other"}, AfterEmptyReply: true, HasSubChats: true, HasWorkspace: true,
		Compaction: &v1beta1.CompactionCause{UsagePercent: 80},
		RetryAfter: []v1beta1.ModelRetryAfter{{ModelConfig: "third", Time: metav1.NewMicroTime(now.Add(time.Hour))}},
	}
}

func TestTheMemoriesOfTheseTestsLackNothing(t *testing.T) {
	for _, memory := range []any{allOfATurn(), allOfAnAttempt()} {
		for v, i := reflect.ValueOf(memory), 0; i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is not set", v.Type().Name(), v.Type().Field(i).Name)
			}
		}
	}
}

func TestReplacedTurnStateIsCleared(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*Facts)
		want    v1beta1.TurnInternalStatus
	}{
		"the next message begins a turn": {
			func(f *Facts) { f.Open = messages(false, "b") },
			v1beta1.TurnInternalStatus{ContentHash: "hash of b", CallsCanceledReasonBefore: v1beta1.CallsInterrupted,
				LastRole: v1beta1.RoleUser},
		},
		"an edit begins the turn again": {
			func(f *Facts) { f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}} },
			v1beta1.TurnInternalStatus{ContentHash: "new", LastRole: v1beta1.RoleUser},
		},
		"a deletion brings an older turn back": {
			func(f *Facts) {
				f.Truncated = &Truncated{Head: "z", Length: 1, Turn: TurnRecord{&v1beta1.TurnStatus{Message: "z"},
					v1beta1.TurnInternalStatus{ContentHash: "hash of z"}}}
			},
			v1beta1.TurnInternalStatus{ContentHash: "hash of z"},
		},
		"a deletion leaves no turn": {func(f *Facts) { f.Truncated = &Truncated{} }, v1beta1.TurnInternalStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").answer(chattest.Says("hi"))
			w.chat.Status.Internal.Turn = allOfATurn()
			if diff := cmp.Diff(c.want, w.pass(c.happens).chat.Status.Internal.Turn); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNextAttemptKeepsOnlyStepState(t *testing.T) {
	answered := func(reply chattest.Reply) func(*world) func(*Facts) {
		return func(w *world) func(*Facts) { return func(f *Facts) { f.Result = chattest.Answer(w.chat, reply) } }
	}
	step := allOfAnAttempt()
	step.AfterEmptyReply, step.HasSubChats, step.HasWorkspace, step.Compaction = false, false, false, nil
	lostOnceMore := step
	lostOnceMore.LostAttempts = 2
	for name, c := range map[string]struct {
		happens func(*world) func(*Facts)
		want    v1beta1.AttemptInternalStatus
	}{
		"an error that may pass": {answered(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)), step},
		"its pod is lost":        {func(*world) func(*Facts) { return lost("") }, lostOnceMore},
		"the step is committed, and the next one begins": {answered(chattest.Calls("1")),
			v1beta1.AttemptInternalStatus{}},
		"the turn is answered": {answered(chattest.Says("hi")), v1beta1.AttemptInternalStatus{}},
		"the turn fails":       {answered(chattest.Fails(v1beta1.ErrorRequestRejected)), v1beta1.AttemptInternalStatus{}},
		"the history is cut": {func(*world) func(*Facts) {
			return func(f *Facts) { f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}} }
		}, v1beta1.AttemptInternalStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a")
			w.chat.Status.Internal.Attempt = allOfAnAttempt()
			w.pass(c.happens(w))
			if diff := cmp.Diff(c.want, *w.remembered()); diff != "" {
				t.Errorf("%s\nafter %+v", diff, w.chat.Status.Generation)
			}
		})
	}
}

func TestInterruptClearsPendingAttemptState(t *testing.T) {
	w := newWorld(t).say("a")
	w.answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
	w.chat.Status.Internal.Attempt = allOfAnAttempt()
	w.ask(v1beta1.RequestInterrupt).want("Waiting v2 a/1 - []")
	if !reflect.ValueOf(*w.remembered()).IsZero() {
		t.Errorf("remembered is %+v", w.remembered())
	}
}
