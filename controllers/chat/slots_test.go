// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/capacity"
)

// listed is a client that lists chats and does nothing else.
type listed struct {
	client.Client
	chats []v1beta1.Chat
}

func (l listed) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1beta1.ChatList).Items = l.chats
	return nil
}

func TestNewManagerLoadsLimitsBeforeTheFirstChat(t *testing.T) {
	chat := func(name string, st v1beta1.ChatStatus) v1beta1.Chat {
		return v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Status: st}
	}
	since := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	chats := []v1beta1.Chat{ // The one that waits comes first in the list.
		chat("1-waits", v1beta1.ChatStatus{WaitingSince: &since}),
		chat("2-generates", v1beta1.ChatStatus{Generation: &v1beta1.GenerationStatus{}}),
		chat("3-rests", v1beta1.ChatStatus{}),
	}
	for limit, want := range map[int32]capacity.Counts{0: {Chats: 1}, 1: {Chats: 1}, 2: {Chats: 2}} {
		gate := capacity.NewGate()
		s := &slots{chats: listed{chats: chats}, gate: gate, loadLimits: func(context.Context) error {
			gate.SetNamespace("a", capacity.Limits{Chats: capacity.Limit{Max: limit, Quota: "q"}})
			return nil
		}}
		if err := s.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if generating, waiting := gate.Counts(); generating != want || waiting.Chats != 2-want.Chats {
			t.Errorf("with a limit of %d %+v generate and %+v wait", limit, generating, waiting)
		}
	}
}

func TestNewManagerLetsInWhoHasWaitedLongest(t *testing.T) {
	waits := func(name string, minutes time.Duration) v1beta1.Chat {
		since := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(-minutes * time.Minute))
		return v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
			Status: v1beta1.ChatStatus{WaitingSince: &since}}
	}
	gate := capacity.NewGate()
	chats := []v1beta1.Chat{waits("1-new", 1), waits("2-old", 9), waits("3-newer", 0)}
	s := &slots{gate: gate, chats: listed{chats: chats},
		loadLimits: func(context.Context) error { // While no manager ran, a slot became free.
			gate.SetNamespace("a", capacity.Limits{Chats: capacity.Limit{Max: 1, Quota: "q"}})
			return nil
		}}
	if err := s.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if let := gate.Requeue(t.Context()); len(let) != 1 || let[0].Name != "2-old" {
		t.Errorf("%v are let in", let)
	}
}

func TestChatElsewhereTakesAndReleasesSlot(t *testing.T) {
	gate := capacity.NewGate()
	limits := capacity.OfCluster(nil)
	limits.All.Chats.Max = 1
	gate.SetCluster(limits)
	s := &slots{gate: gate}
	chat := func(ns string, st v1beta1.ChatStatus) *v1beta1.Chat {
		return &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}, Status: st}
	}
	generates := chat("elsewhere", v1beta1.ChatStatus{Generation: &v1beta1.GenerationStatus{}})
	here := chat("here", v1beta1.ChatStatus{})
	s.shownElsewhere(generates)
	if s.enter(here) == nil {
		t.Fatal("two generate, and one may")
	}
	for name, gone := range map[string]any{"it goes": generates,
		"nobody has seen it go": cache.DeletedFinalStateUnknown{Obj: generates}} {
		s.shownElsewhere(generates)
		s.goneElsewhere(gone)
		if held := s.enter(here); held != nil {
			t.Errorf("%s, and %s", name, held)
		}
		s.leave(keyOf(here))
	}
	since := metav1.NowMicro()
	s.shownElsewhere(chat("elsewhere", v1beta1.ChatStatus{WaitingSince: &since}))
	if s.enter(here) == nil {
		t.Error("a newcomer takes the slot of who waits elsewhere")
	}
}

func TestSyncFailsUntilLimitsAreLoaded(t *testing.T) {
	unknown := errors.New("the quotas cannot be read")
	gate := capacity.NewGate()
	s := &slots{chats: listed{}, gate: gate, loadLimits: func(context.Context) error { return unknown }}
	for range 2 {
		if err := s.WaitForSync(t.Context()); !errors.Is(err, unknown) {
			t.Errorf("the error is %v", err)
		}
	}
}
