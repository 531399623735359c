// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// anHour is how long the chats of these tests are kept that rest.
const anHour = time.Hour

// keptAnHour is a chat that goes an hour after it came to rest.
func keptAnHour(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.chat.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(anHour / time.Second))}
	return w
}

// expires holds when the chat goes, as its status says; zero: it is kept.
func (w *world) expires(want time.Time) *world {
	w.t.Helper()
	got := w.chat.Status.ExpiresAt
	switch {
	case (got == nil) != want.IsZero(), got != nil && !got.Time.Equal(want):
		w.t.Errorf("the chat expires at %v, want %v", got, want)
	case got != nil && got.After(w.now) && (w.last.Again == 0 || w.last.Again > got.Sub(w.now)):
		w.t.Errorf("it is looked at again in %v", w.last.Again)
	}
	return w
}

// rests holds since when the chat rests, as its status says; zero: it does not.
func (w *world) isIdle(since time.Time) *world {
	w.t.Helper()
	got := w.chat.Status.IdleSince
	if (got == nil) != since.IsZero() || got != nil && !got.Time.Equal(since) {
		w.t.Errorf("the chat rests since %v, want %v", got, since)
	}
	return w
}

func TestRetentionCountsFromStartOfRest(t *testing.T) {
	w := keptAnHour(t).pass(nil).expires(now.Add(anHour)) // It waits for its first message.
	w.now = now.Add(time.Minute)
	w.say("a").isIdle(time.Time{}).expires(time.Time{})
	w.now = now.Add(2 * time.Minute)
	w.answer(chattest.Says("hi")).expires(now.Add(2*time.Minute + anHour))
	w.later(anHour - time.Second).expires(now.Add(2*time.Minute + anHour))
	if w.last.Expires {
		t.Error("it goes a second early")
	}
	if w.later(time.Second); !w.last.Expires {
		t.Error("it does not go in time")
	}
}

func TestChatExpiresOnlyAfterStatusShowsExpiry(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi")).isIdle(now).expires(time.Time{})
	w.later(2 * anHour)
	w.chat.Spec.Retention = keptAnHour(t).chat.Spec.Retention
	w.pass(nil).expires(now.Add(anHour)) // It counts from when it came to rest.
	if w.last.Expires || w.last.Again != time.Nanosecond {
		t.Errorf("it goes before anybody can see it; again in %v", w.last.Again)
	}
	if w.pass(nil); !w.last.Expires {
		t.Error("it does not go in the next pass")
	}
}

func TestWhatKeepsAChatFromGoing(t *testing.T) {
	open := func(reason v1beta1.ErrorReason) func(*world) {
		return func(w *world) {
			w.facts = func(f *Facts) {
				f.Open, f.Model = messages(false, "b"), nil
				f.Blocked = &v1beta1.GenerationError{Reason: reason, Message: "There is none", Advice: "Make one"}
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*world)
		kept   bool
	}{
		"nothing":              {func(*world) {}, false},
		"that it failed":       {func(w *world) { w.chat.Status.Phase = v1beta1.ChatError }, false},
		"that it is archived":  {func(w *world) { w.facts = func(f *Facts) { f.Archive = true } }, false},
		"that it is suspended": {func(w *world) { w.facts = func(f *Facts) { f.Suspended = true } }, true},
		"that it failed and those stay longer": {func(w *world) {
			w.chat.Status.Phase = v1beta1.ChatError
			w.chat.Spec.Retention.DeleteFailedAfterSeconds = new(int32(5 * anHour / time.Second))
		}, true},
		"that only failed ones go": {func(w *world) {
			w.chat.Spec.Retention = &v1beta1.ChatRetention{DeleteFailedAfterSeconds: new(int32(1))}
		}, true},
		"that it is suspended and one too many": {func(w *world) {
			w.facts = func(f *Facts) { f.Suspended, f.Surplus = true, true }
		}, true},
		"a message that nobody can answer":    {open(v1beta1.ErrorModelConfigNotFound), true},
		"one beyond the limits of its family": {open(v1beta1.ErrorSubChatLimitExceeded), false},
		"a turn over budget": {func(w *world) {
			w.chat.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "1"}}
			w.say("b").wantHeld(v1beta1.ErrorModelPriceMissing, "")
		}, true},
		"that its class is gone":        {func(w *world) { w.facts = classGone }, true},
		"that nobody says for how long": {func(w *world) { w.chat.Spec.Retention = nil }, true},
		"a retention without a time":    {func(w *world) { w.chat.Spec.Retention.DeleteAfterSeconds = nil }, true},
		"that it is a sub-chat":         {isSubChat, true},
		"a chat below it at work":       {func(w *world) { w.facts = func(f *Facts) { f.AtWorkBelow = true } }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := keptAnHour(t).say("a").answer(chattest.Says("hi"))
			c.change(w)
			if w.later(2 * anHour).pass(nil).later(2 * anHour); w.last.Expires == c.kept {
				t.Errorf("it expires at %v, and goes: %v", w.chat.Status.ExpiresAt, w.last.Expires)
			}
		})
	}
}

func TestFailedChatWithQueueDoesNotExpire(t *testing.T) {
	w := keptAnHour(t).say("a").say("b").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	w.want("Error v1 a/1 - [b]").isIdle(time.Time{}).expires(time.Time{})
}

func TestArchivedFailedChatWithQueueExpires(t *testing.T) {
	w := keptAnHour(t).say("a").say("b").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	w.facts = func(f *Facts) { f.Archive = true }
	w.pass(nil).want("Error v1 a/1 - [b]").isIdle(now).expires(now.Add(anHour))
	w.facts = nil
	w.pass(nil).want("Error v1 a/1 - [b]").isIdle(time.Time{}).expires(time.Time{})
}

func TestSurplusChatExpiresAtOnce(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi")).later(time.Minute).expires(time.Time{})
	w.facts = func(f *Facts) { f.Surplus = true }
	due := now.Add(3 * time.Minute)
	w.later(2 * time.Minute).expires(due)
	if w.last.Expires || w.last.Again != time.Nanosecond {
		t.Errorf("it is deleted before anybody can see it; again in %v", w.last.Again)
	}
	if w.later(3 * time.Minute).expires(due); !w.last.Expires {
		t.Error("it is not deleted in the next pass")
	}
}

func TestNewActivityOutweighsSurplus(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"))
	w.now = now.Add(time.Minute)
	w.say("b")
	w.facts = func(f *Facts) { f.Surplus = true }
	w.answer(chattest.Says("again")).isIdle(w.now).expires(time.Time{})
}

func TestClassKeepsItsNewestIdleChats(t *testing.T) {
	idle := []Idle{
		{"oldest", now, false}, {"old-failed", now, true}, {"new", now.Add(2), false}, {"failed", now.Add(3), true},
		{"b", now.Add(1), false}, {"a", now.Add(1), false},
	}
	for name, c := range map[string]struct {
		keep *v1beta1.ChatKeep
		want []string
	}{
		"without a limit":     {nil, nil},
		"with an empty one":   {&v1beta1.ChatKeep{}, nil},
		"a limit for all":     {&v1beta1.ChatKeep{Chats: new(int32(3))}, []string{"b", "old-failed", "oldest"}},
		"one for failed ones": {&v1beta1.ChatKeep{FailedChats: new(int32(1))}, []string{"old-failed"}},
		"one for each": {&v1beta1.ChatKeep{Chats: new(int32(2)), FailedChats: new(int32(2))},
			[]string{"b", "oldest"}},
	} {
		var got []string
		for _, chat := range Surplus(c.keep, slices.Clone(idle)) {
			got = append(got, chat.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are deleted, want %v", name, got, c.want)
		}
	}
}

func TestWhateverHappensInAChatCountsAnew(t *testing.T) {
	at := now.Add(time.Minute)
	for name, happens := range map[string]func(*world){
		"a turn that fails": func(w *world) {
			w.say("b").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).want("Error v3 b/3 - []")
		},
		"it is archived":       func(w *world) { w.pass(func(f *Facts) { f.Archive = true }) },
		"its context is clear": func(w *world) { w.ask(v1beta1.RequestClear) },
	} {
		t.Run(name, func(t *testing.T) {
			w := keptAnHour(t).say("a").answer(chattest.Says("hi")).isIdle(now)
			w.now = at
			happens(w)
			w.isIdle(at).expires(at.Add(anHour))
		})
	}
}

func TestNoOpChangeDoesNotExtendRetention(t *testing.T) {
	w := keptAnHour(t).say("a").answer(chattest.Says("hi")).isIdle(now)
	w.chat.Generation++
	w.later(time.Minute).isIdle(now).expires(now.Add(anHour))
}

func TestAFamilyRestsWhenItsLastMemberDoes(t *testing.T) {
	w := keptAnHour(t).say("a").answer(chattest.Says("hi")).expires(now.Add(anHour))
	w.facts = func(f *Facts) { f.HasSubChats, f.AtWorkBelow = true, true }
	w.later(time.Minute).isIdle(now).expires(time.Time{})
	later := now.Add(30 * time.Minute)
	w.facts = func(f *Facts) { f.HasSubChats, f.IdleBelow = true, later }
	w.later(time.Hour).isIdle(now).expires(later.Add(anHour))
	w.facts = func(f *Facts) { f.HasSubChats, f.IdleBelow = true, now.Add(-anHour) }
	w.pass(nil).expires(now.Add(anHour))
}

func TestTheTimerIsFoundAgain(t *testing.T) {
	since := metav1.NewTime(now)
	w := keptAnHour(t).say("a").answer(chattest.Says("hi"))
	w.chat.Status.IdleSince, w.chat.Status.ExpiresAt = &since, new(metav1.NewTime(now.Add(anHour)))
	if w.later(20 * time.Minute); w.last.Again != 40*time.Minute {
		t.Errorf("a manager that begins looks again in %v", w.last.Again)
	}
	if w.later(anHour); !w.last.Expires {
		t.Error("what has expired meanwhile stays")
	}
}

func isSubChat(w *world) { w.chat.Spec.ParentRef = &v1beta1.ChatReference{Name: "p"} }
