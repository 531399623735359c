// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// models passes with these fallbacks.
func models(fallbacks ...string) func(*Facts) {
	return func(f *Facts) {
		for _, name := range fallbacks {
			f.Model.Fallbacks = append(f.Model.Fallbacks, Alternative{Config: name, Name: "model of " + name})
		}
	}
}

func TestRetryableFailureIsRetriedAfterItsWait(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)).want("Running v1 a/1 - []")
	retry := w.chat.Status.Retry
	if retry == nil || retry.Attempt != 1 || retry.Message != "what is wrong" ||
		retry.Reason != v1beta1.ErrorOverloaded || !retry.At.Equal(at(time.Second)) {
		t.Fatalf("retry is %+v", retry)
	}
	if ready := meta.FindStatusCondition(w.chat.Status.Conditions,
		v1beta1.ConditionReady); v1beta1.ReasonOf(ready) != v1beta1.ReasonRetrying {
		t.Errorf("Ready is %+v", ready)
	}
	w.later(time.Second - 1).want("Running v1 a/1 - []").later(1).want("Running v1 a/1 2:GenerateAssistant []")
	if w.chat.Status.Retry != nil {
		t.Error("the retry is still recorded")
	}
	w.answer(chattest.Says("hi")).want("Waiting v2 c-1-2/2 - []")
}

func TestRetriesBackOffAndHeedTheProvidersWait(t *testing.T) {
	w := newWorld(t).say("a")
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if w.answer(chattest.Fails(v1beta1.ErrorProviderError,
			chattest.ForNow)); !w.chat.Status.Retry.At.Equal(w.at(want * time.Second)) {
			t.Fatalf("after attempt %d the next one is at %v", i+1, w.chat.Status.Retry.At)
		}
		w.later(want * time.Second)
	}
	w.answer(chattest.Fails(v1beta1.ErrorRateLimited, chattest.ForNow, chattest.After(90)))
	if !w.chat.Status.Retry.At.Equal(w.at(90 * time.Second)) {
		t.Errorf("the next one is at %v", w.chat.Status.Retry.At)
	}
}

func TestExhaustedAttemptsReportTheLastError(t *testing.T) {
	w := newWorld(t).say("a")
	for range v1beta1.DefaultMaxAttempts - 1 {
		w.answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
		if retry := w.chat.Status.Retry; retry.Action != v1beta1.ActionGenerateAssistant {
			t.Fatalf("the retry is %+v", retry)
		}
		w.later(time.Minute)
	}
	w.want("Running v1 a/1 25:GenerateAssistant []").answer(chattest.Fails(v1beta1.ErrorRateLimited, chattest.ForNow)).
		want("Error v1 a/1 - []")
	if e := w.chat.Status.LastError; e.Reason != v1beta1.ErrorRateLimited ||
		e.Action != v1beta1.ActionGenerateAssistant ||
		e.Text() != "Attempt 25 failed, too. what is wrong. what to do" {
		t.Errorf("last error is %+v", e)
	}
	if notices := w.last.Notices; len(notices) != 1 || !strings.HasSuffix(notices[0].Note, "what is wrong. what to do") {
		t.Errorf("notices are %+v", notices)
	}
}

func TestEachStepHasItsOwnBudget(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)).later(time.Second)
	w.answer(chattest.Calls("1")).answer(chattest.Results("1")).want("Running v3 c-2-1/3 1:GenerateAssistant []")
	w.answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
	if retry := w.chat.Status.Retry; retry.Attempt != 1 || !retry.At.Equal(w.at(time.Second)) {
		t.Errorf("retry is %+v", retry)
	}
}

func TestRetryingChatIsSteered(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*world)
		want string
	}{
		"an interruption ends the turn at once": {func(w *world) { w.ask(v1beta1.RequestInterrupt) }, "Waiting v2 a/1 - []"},
		"a message that cuts in begins at once": {func(w *world) { w.cutIn("b") }, "Running v2 b/2 1:GenerateAssistant []"},
		"another message is queued":             {func(w *world) { w.say("b") }, "Running v1 a/1 - [b]"},
		"suspension holds the next attempt": {func(w *world) {
			w.pass(func(f *Facts) { f.Suspended, f.Now = true, now.Add(time.Hour) })
		}, "Running v1 a/1 - []"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
			c.do(w)
			w.want(c.want)
			if phase := w.chat.Status.Phase; phase == v1beta1.ChatWaiting && w.chat.Status.Retry != nil {
				t.Error("the retry outlives its turn")
			}
		})
	}
}

func TestProviderRetryAfterDelaysTheNextAttempt(t *testing.T) {
	w := newWorld(t)
	w.facts = models("second", "third")
	w.say("a")
	for i, c := range []struct {
		asked   string
		waits   int32
		next    string
		seconds int
	}{
		{"default", 60, "second", 0},
		{"second", 5, "third", 0},
		{"third", 0, "third", 1},   // 0 s since the first failed: the others asked for longer waits.
		{"third", 0, "third", 2},   // 1 s: the second wants 4 more.
		{"third", 0, "second", 2},  // 3 s: its 5 are over before another wait of the third.
		{"second", 90, "third", 0}, // 5 s.
		{"third", 70, "default", 55},
	} {
		st := &w.chat.Status
		if st.Generation == nil || st.Generation.ModelConfig != c.asked {
			t.Fatalf("attempt %d asks %+v, want %s", i+1, st.Generation, c.asked)
		}
		if w.answer(chattest.Fails(v1beta1.ErrorRateLimited, chattest.ForNow, chattest.After(c.waits))); c.seconds > 0 {
			if st = &w.chat.Status; st.Retry == nil || st.Retry.ModelConfig != c.next ||
				!st.Retry.At.Equal(w.at(time.Duration(c.seconds)*time.Second)) {
				t.Fatalf("after attempt %d: %+v, want %s in %d s", i+1, st.Retry, c.next, c.seconds)
			}
			w.later(time.Duration(c.seconds) * time.Second)
		}
	}
	if got := w.chat.Status.Generation; got == nil || got.ModelConfig != "default" || len(w.remembered().RetryAfter) != 3 {
		t.Errorf("the last one asked is %+v, with %+v", got, w.remembered())
	}
	w.pass(func(f *Facts) { f.PodLost = true })
	if got := w.chat.Status.Generation; got.ModelConfig != "default" || len(w.remembered().RetryAfter) != 3 {
		t.Errorf("after its pod was lost: %+v, with %+v", got, w.remembered())
	}
}

func TestFallbacksAreTriedImmediatelyThenPrimaryAfterBackoff(t *testing.T) {
	w := newWorld(t)
	w.facts = models("second", "third")
	w.say("a")
	for i, want := range []string{"second", "third"} {
		w.answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)).
			want(fmt.Sprintf("Running v1 a/1 %d:GenerateAssistant []", i+2))
		if got := w.chat.Status.Generation.ModelConfig; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
	w.answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)).want("Running v1 a/1 - []").later(time.Second)
	if got := w.chat.Status.Generation; got.ModelConfig != "default" || got.Attempt != 4 {
		t.Errorf("the second round begins with %+v", got)
	}
}

func TestModelIsRuledOutForTheStepAlone(t *testing.T) {
	w := newWorld(t)
	w.facts = models("second")
	w.say("a").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).want("Running v1 a/1 2:GenerateAssistant []")
	w.answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)).want("Running v1 a/1 - []").later(time.Second)
	if got := w.chat.Status.Generation; got == nil || got.ModelConfig != "second" || got.Attempt != 3 ||
		len(w.remembered().ExcludedModels) != 1 {
		t.Fatalf("asked %+v, with %+v", got, w.remembered())
	}
	w.pass(func(f *Facts) { f.PodLost = true })
	if got := w.chat.Status.Generation; got.ModelConfig != "second" || len(w.remembered().ExcludedModels) != 1 {
		t.Errorf("after its pod was lost: %+v, with %+v", got, w.remembered())
	}
	w.answer(chattest.Calls("1")).answer(chattest.Results("1"))
	if got := w.chat.Status.Generation; got.ModelConfig != "default" || w.remembered().ExcludedModels != nil {
		t.Errorf("the next step begins with %+v and %+v", got, w.remembered())
	}
}

func TestNonRetryableRequestErrorSkipsFallbacks(t *testing.T) {
	for _, reason := range []v1beta1.ErrorReason{
		v1beta1.ErrorRequestRejected, v1beta1.ErrorContentFiltered, v1beta1.ErrorContextTooLong,
		v1beta1.ErrorHistoryInconsistent, v1beta1.ErrorInternal,
	} {
		w := newWorld(t)
		w.facts = models("second")
		w.say("a").answer(chattest.Fails(reason)).want("Error v1 a/1 - []")
		if got := w.chat.Status.LastError.Reason; got != reason {
			t.Errorf("%s is reported as %s", reason, got)
		}
	}
}

func TestPermanentFailureOfAllModelsFailsTheTurn(t *testing.T) {
	w := newWorld(t)
	w.facts = models("second")
	w.say("a").answer(chattest.Fails(v1beta1.ErrorModelNotFound)).
		answer(chattest.Fails(v1beta1.ErrorUsageLimitReached)).want("Error v1 a/1 - []")
	if got := w.chat.Status.LastError.Reason; got != v1beta1.ErrorUsageLimitReached {
		t.Errorf("reported as %s", got)
	}
}

func TestBackoffDoublesWithExcludedFallback(t *testing.T) {
	w := newWorld(t)
	w.facts = models("other")
	w.say("a").answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)).
		answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	for i, want := range []time.Duration{1, 2, 4, 8} {
		if retry := w.chat.Status.Retry; retry == nil || retry.ModelConfig != "default" ||
			!retry.At.Equal(w.at(want*time.Second)) {
			t.Fatalf("wait %d is %+v", i+1, retry)
		}
		w.later(want * time.Second).answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
	}
}

func TestRemovedFallbackBringsNoRuledOutModelBack(t *testing.T) {
	w := newWorld(t)
	w.facts = models("other", "third")
	w.say("a").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).
		answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow, chattest.After(30))).
		answer(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow, chattest.After(60)))
	if retry := w.chat.Status.Retry; retry == nil || retry.ModelConfig != "other" {
		t.Fatalf("retry is %+v", retry)
	}
	w.facts = models("third")
	w.later(30 * time.Second)
	if g := w.chat.Status.Generation; g == nil || g.ModelConfig != "third" {
		t.Errorf("the attempt is %+v", g)
	}
}

func TestFallbackIsUsedDuringProviderRetryAfter(t *testing.T) {
	later := now.Add(time.Minute)
	models := func(first, second time.Time) func(*Facts) {
		return func(f *Facts) {
			f.Open = messages(false, "a")
			f.Model = &Model{Alternative: Alternative{Config: "default", Name: "m", NotBefore: first},
				Fallbacks: []Alternative{{Config: "spare", Name: "s", NotBefore: second}}}
		}
	}
	for name, c := range map[string]struct {
		first, second time.Time
		want          string
	}{
		"no one asks":      {time.Time{}, time.Time{}, "default"},
		"the first asks":   {later, time.Time{}, "spare"},
		"its time is over": {now, time.Time{}, "default"},
		"both ask":         {later, later, "default"}, // Whoever provides the call says that it must wait.
		"the first longer": {later.Add(1), later, "spare"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).pass(models(c.first, c.second))
			if g := w.chat.Status.Generation; g == nil || g.ModelConfig != c.want {
				t.Errorf("got %+v, want %s", g, c.want)
			}
		})
	}
}

func TestLimitOfTheModelHoldsTheNextStep(t *testing.T) {
	w := newWorld(t)
	until := now.Add(time.Minute)
	w.pass(func(f *Facts) {
		f.Open, f.ModelLimit = messages(false, "a"), &ModelLimit{Message: "It is busy.", Until: until}
	})
	w.want("Running v1 a/1 - []").wantReason(v1beta1.ReasonWaitingForModel)
	wait := w.chat.Status.Wait
	if wait == nil || wait.For != v1beta1.WaitForModel || !wait.Until.Time.Equal(until) ||
		w.chat.Status.WaitingSince != nil {
		t.Errorf("it waits for %+v since %v", wait, w.chat.Status.WaitingSince)
	}
	w.pass(nil).want("Running v1 a/1 1:GenerateAssistant []")
}
