// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/test/kit/chattest"
)

// missing makes what answers the chat not exist.
func missing(reason v1beta1.ErrorReason) func(*Facts) {
	return func(f *Facts) {
		f.Model, f.Blocked = nil, &v1beta1.GenerationError{Reason: reason, Message: "It does not exist", Advice: "Create it"}
	}
}

// namesMissing makes the message of the turn, or one that is queued, name a ChatModelConfig that does not exist.
func namesMissing(f *Facts) {
	f.Named = map[string]*Model{"absent": nil}
	for i := range f.Queued {
		f.Queued[i].ModelConfig = "absent"
	}
}

// holds are turns in the middle of which a reference turns out to lead to nothing.
var holds = map[string]struct {
	absent    func(*Facts)
	reason    v1beta1.ErrorReason
	wait      v1beta1.WaitFor
	queued    bool
	continued string
}{
	"the class": {missing(v1beta1.ErrorChatClassNotFound), v1beta1.ErrorChatClassNotFound, v1beta1.WaitForChatClass,
		false, "Running v2 c-1-1/2 1:ExecuteTools []"},
	"the model": {missing(v1beta1.ErrorModelConfigNotFound), v1beta1.ErrorModelConfigNotFound,
		v1beta1.WaitForModelConfig, false, "Running v2 c-1-1/2 1:ExecuteTools []"},
	"the model of a queued message": {namesMissing, v1beta1.ErrorModelConfigNotFound, v1beta1.WaitForModelConfig,
		true, "Running v3 b/3 1:GenerateAssistant []"},
}

// held is a chat in whose turn the reference of the case leads to nothing.
func held(t *testing.T, queued bool, absent func(*Facts)) *world {
	t.Helper()
	w, reply := newWorld(t).say("a"), chattest.Calls("1")
	if queued {
		w.say("b")
		reply = chattest.Says("hi")
	}
	return w.pass(func(f *Facts) { absent(f); f.Result = chattest.Answer(w.chat, reply) })
}

func TestMissingReferenceHoldsTheTurn(t *testing.T) {
	for name, c := range holds {
		t.Run(name, func(t *testing.T) {
			w := held(t, c.queued, c.absent)
			st := &w.chat.Status
			if st.Phase != v1beta1.ChatRunning || st.Generation != nil || len(w.last.Notices) > 0 {
				t.Errorf("the chat is %s with attempt %+v, Events %+v", st.Phase, st.Generation, w.last.Notices)
			}
			if ready := readyOf(w); ready.Status != metav1.ConditionUnknown || ready.Reason != string(c.reason) {
				t.Errorf("Ready is %+v", ready)
			}
			end := metav1.NewTime(w.now.Add(conditions.ReferencePatience))
			if st.Wait == nil || st.Wait.For != c.wait || !st.Wait.Until.Equal(&end) {
				t.Errorf("it waits for %+v", st.Wait)
			}
			if left := Deadline(st, w.now); left != conditions.ReferencePatience {
				t.Errorf("it is looked at again after %s", left)
			}
			w.now = w.now.Add(conditions.ReferencePatience - time.Second)
			w.pass(c.absent).want(w.line())
			w.pass(func(f *Facts) {
				f.Named = map[string]*Model{"absent": {Alternative: Alternative{Config: "absent", Name: "m"}}}
			}).want(c.continued)
		})
	}
}

func TestMissingReferenceFailsTheTurnAfterItsDeadline(t *testing.T) {
	for name, c := range holds {
		t.Run(name, func(t *testing.T) {
			w := held(t, c.queued, c.absent)
			w.now = w.now.Add(conditions.ReferencePatience)
			w.pass(c.absent).wantFailure(c.reason, "Create it")
		})
	}
}

func TestTurnRestartsReferenceWaitOfIdleChat(t *testing.T) {
	absent := missing(v1beta1.ErrorModelConfigNotFound)
	w := newWorld(t).say("a").answer(chattest.Says("hi"))
	w.pass(func(f *Facts) { absent(f); f.Open = messages(false, "b") }) // It waits for the model, as long as it takes.
	w.now = w.now.Add(time.Hour)
	w.pass(func(f *Facts) {
		absent(f)
		f.Open, f.Edited = messages(false, "b"), &Edited{Message: Message{Name: "a", ContentHash: "new"}}
	})
	st := &w.chat.Status
	end := metav1.NewTime(w.now.Add(conditions.ReferencePatience))
	if st.Phase != v1beta1.ChatRunning || st.Wait == nil || !st.Wait.Until.Equal(&end) {
		t.Errorf("the chat is %s and waits for %+v", st.Phase, st.Wait)
	}
}

func TestNextTurnWaitsAnew(t *testing.T) {
	w := newWorld(t).say("a").say("b", "c")
	w.pass(func(f *Facts) { namesMissing(f); f.Result = chattest.Answer(w.chat, chattest.Says("hi")) })
	w.now = w.now.Add(conditions.ReferencePatience - time.Second)
	w.pass(func(f *Facts) { namesMissing(f); f.Requests = []Request{{Kind: v1beta1.RequestInterrupt, Token: "1"}} })
	st := &w.chat.Status
	if st.Turn.Message != "c" || st.Wait == nil || st.Wait.Until == nil || st.Wait.Until.Sub(w.now) < time.Minute {
		t.Errorf("the next turn waits for %+v", st.Wait)
	}
}

func TestReferenceWaitEndsBeforeLaterRetry(t *testing.T) {
	w := newWorld(t).say("a")
	absent := missing(v1beta1.ErrorModelConfigNotFound)
	w.pass(func(f *Facts) {
		absent(f)
		f.Result = chattest.Answer(w.chat, chattest.Fails(v1beta1.ErrorRateLimited, chattest.ForNow, chattest.After(3600)))
	})
	if left := Deadline(&w.chat.Status, w.now); left != conditions.ReferencePatience {
		t.Errorf("it is looked at again after %s: %+v", left, w.chat.Status.Retry)
	}
}

func TestArchivingEndsTheWaitForAReference(t *testing.T) {
	for name, c := range holds {
		t.Run(name, func(t *testing.T) {
			w := held(t, c.queued, c.absent)
			w.pass(func(f *Facts) { c.absent(f); f.Archive = true })
			if st := w.chat.Status; !st.Archived || st.LastError == nil || st.LastError.Reason != c.reason {
				t.Errorf("archived: %v, error %+v", st.Archived, st.LastError)
			}
		})
	}
}

func TestPodThatFindsNoModelHoldsTheTurn(t *testing.T) {
	w := newWorld(t).say("a")
	absent := missing(v1beta1.ErrorModelConfigNotFound)
	w.pass(func(f *Facts) {
		absent(f)
		f.Result = chattest.Answer(w.chat, chattest.Fails(v1beta1.ErrorModelConfigNotFound, chattest.ForNow))
	}).want("Running v1 a/1 - []")
	w.later(time.Minute).want("Running v1 a/1 2:GenerateAssistant []")
}
