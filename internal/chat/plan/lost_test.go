// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

func lost(by string) func(*Facts) {
	return func(f *Facts) { f.PodLost, f.PodLostBy = true, by }
}

func TestConsecutiveLossesBackOff(t *testing.T) {
	w := newWorld(t).say("a").pass(lost("")).want("Running v1 a/1 2:GenerateAssistant []")
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		w.pass(lost("it did not start: no image")).want("Running v1 a/1 - []")
		retry, losses := w.chat.Status.Retry, int(w.remembered().LostAttempts)
		if retry == nil || losses != i+2 || !retry.At.Equal(w.at(wait)) ||
			retry.Reason != v1beta1.ErrorGenerationPodLost {
			t.Fatalf("after loss %d the retry is %+v, after %d losses", i+2, retry, losses)
		}
		ready := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady)
		if v1beta1.ReasonOf(ready) != v1beta1.ReasonRetrying ||
			!strings.Contains(ready.Message, "it did not start: no image") {
			t.Errorf("Ready is %+v", ready)
		}
		w.later(wait)
		losses = int(w.remembered().LostAttempts)
		if g := w.chat.Status.Generation; g == nil || losses != i+2 || int(g.Attempt) != i+3 {
			t.Fatalf("the attempt after it is %+v, after %d losses", g, losses)
		}
	}
	w.answer(chattest.Calls("1"))
	if g := w.chat.Status.Generation; g == nil || w.remembered().LostAttempts != 0 {
		t.Errorf("the next step begins with %+v", g)
	}
}

func TestLossesMakeNoWaitAfterAFailureLonger(t *testing.T) {
	w := newWorld(t).say("a").pass(lost("")).pass(lost("")).later(time.Second).
		answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
	if retry := w.chat.Status.Retry; retry == nil || !retry.At.Equal(w.at(time.Second)) ||
		w.remembered().LostAttempts != 2 {
		t.Errorf("the retry after the first failure is %+v", retry)
	}
}

func TestExhaustedAttemptsSayHowManyWereLost(t *testing.T) {
	w := newWorld(t).say("a")
	for range v1beta1.DefaultMaxAttempts - 2 {
		w.answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)).later(time.Minute)
	}
	w.pass(lost("")).later(time.Minute).pass(lost("its node is gone")).want("Error v1 a/1 - []")
	e := w.chat.Status.LastError
	if e.Reason != v1beta1.ErrorAttemptsExhausted || e.Action != v1beta1.ActionGenerateAssistant ||
		!strings.Contains(e.Message, "tried 25 times, and 2 of the attempts were lost") ||
		!strings.Contains(e.Message, "its node is gone") {
		t.Errorf("the error is %+v", e)
	}
}

func TestLostAttemptWaitsForCapacityAndPod(t *testing.T) {
	for reason, held := range map[v1beta1.ConditionReason]func(*Facts){
		v1beta1.ReasonWaitingForCapacity:    func(f *Facts) { f.NoCapacity = "full" },
		v1beta1.ReasonGenerationPodRejected: func(f *Facts) { f.PodRejected = "exceeded quota" },
	} {
		t.Run(string(reason), func(t *testing.T) {
			w := newWorld(t).say("a").pass(func(f *Facts) { lost("")(f); held(f) }).want("Running v1 a/1 - []")
			ready := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady)
			if v1beta1.ReasonOf(ready) != reason {
				t.Errorf("Ready is %+v", ready)
			}
			w.pass(nil).want("Running v1 a/1 2:GenerateAssistant []")
		})
	}
}

// A chat with an attempt has a slot and a place with its model, which others wait for.
func TestSuspendedChatKeepsNoLostAttempt(t *testing.T) {
	for name, lose := range map[string]func(*world, *Facts){
		"its pod is gone":       func(_ *world, f *Facts) { lost("its node is gone")(f) },
		"its pod has lost it":   func(w *world, f *Facts) { f.Result = chattest.Answer(w.chat, chattest.Lost()) },
		"its result is deleted": func(w *world, f *Facts) { deleted(w)(f) },
		"the name of its result is taken": func(w *world, f *Facts) {
			f.Result = chattest.Answer(w.chat, chattest.Says("hi"), strangers["not generated"])
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a")
			w.pass(func(f *Facts) { f.Suspended = true; lose(w, f) }).want("Running v1 a/1 - []").
				wantReason(v1beta1.ReasonSuspended)
			w.pass(func(f *Facts) { f.Suspended = true }).want("Running v1 a/1 - []")
			w.pass(nil).want("Running v1 a/1 2:GenerateAssistant []")
		})
	}
}

// deleted makes the result of the attempt under way one that was deleted.
func deleted(w *world, change ...chattest.Reply) func(*Facts) {
	return func(f *Facts) { f.Deleted = chattest.Answer(w.chat, change...) }
}

func TestDeletedResultBeginsAnotherAttempt(t *testing.T) {
	w := newWorld(t).say("a")
	w.pass(deleted(w)).want("Running v1 a/1 2:GenerateAssistant []")
	w.pass(deleted(w)).want("Running v1 a/1 - []") // The second in a row waits.
	if r := w.chat.Status.Retry; r == nil || w.remembered().LostAttempts != 2 ||
		!strings.Contains(r.Message, "message c-1-2 was deleted before it was in the history") {
		t.Errorf("the retry is %+v", r)
	}
}

func TestADeletedResultOfAnotherAttemptChangesNothing(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.ChatMessage){
		"an earlier attempt":        func(m *v1beta1.ChatMessage) { m.Spec.Generation.Attempt = 0 },
		"an earlier history":        func(m *v1beta1.ChatMessage) { m.Spec.Generation.HistoryVersion = 0 },
		"a deleted chat":            func(m *v1beta1.ChatMessage) { m.Spec.Generation.ChatUID = "v" },
		"another pod":               strangers["another pod"],
		"a message of its own name": func(m *v1beta1.ChatMessage) { m.Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a")
			w.pass(deleted(w, change)).want("Running v1 a/1 1:GenerateAssistant []")
		})
	}
	w := newWorld(t).say("a")
	w.pass(func(f *Facts) {
		f.Result, f.Deleted = chattest.Answer(w.chat, chattest.Says("hi")), chattest.Answer(w.chat, chattest.Says("hi"))
	}).
		want("Waiting v2 c-1-1/2 - []")
}
