// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/chattest"
)

// answered is message a, which says that chat c has answered it.
func answered(change ...func(*v1beta1.ChatMessage)) *v1beta1.ChatMessage {
	m := asked()
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted, ChatUID: "uid", HistoryVersion: 3,
		ContentHash: content.Of(m), Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady,
			Status: metav1.ConditionTrue, Reason: string(v1beta1.ReasonAnswered)}}}
	for _, c := range change {
		c(m)
	}
	return m
}

// replied is the reply to a, changed.
func replied(change ...func(*v1beta1.ChatMessage)) *v1beta1.ChatMessage {
	m := reply(chattest.Says("hello"))
	for _, c := range change {
		c(m)
	}
	return m
}

func TestStartupReconcilesOnlyMessagesWithPendingWork(t *testing.T) {
	resumed := func(st *v1beta1.ChatStatus) { committed(st); st.Internal.Turn.ResumedVersion = 4 }
	ofAnother := func(m *v1beta1.ChatMessage) { m.Status.ChatUID = "another" }
	edited := func(m *v1beta1.ChatMessage) { m.Generation++ }
	repliesToAnother := func(m *v1beta1.ChatMessage) { m.Spec.Generation.ChatUID = "another" }
	goesOn := func(st *v1beta1.ChatStatus) {
		committed(st)
		st.History.Version, st.History.Head = 5, "b"
		st.Internal.Tail = []v1beta1.CommittedMessage{{Message: "b", Parent: "c-3-1"}}
	}
	loss := reply(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
	for name, c := range map[string]struct {
		message client.Object
		chat    *v1beta1.Chat
		woken   bool
	}{
		"it is answered":                           {answered(), answering(committed), false},
		"it was taken up again since":              {answered(), answering(resumed), true},
		"it is of a chat that is gone":             {answered(), nil, true},
		"it is of an older chat of the name":       {answered(ofAnother), answering(committed), true},
		"it was edited":                            {answered(edited), answering(committed), true},
		"it has said nothing yet":                  {asked(), answering(committed), true},
		"it is the newest reply":                   {replied(), answering(committed), false},
		"it is a reply that another one follows":   {replied(), answering(goesOn), false},
		"it is a reply that is about to be a step": {replied(), answering(), false},
		"it is a reply that came too late":         {replied(), answering(movedOn), true},
		"it is a reply to an older chat":           {replied(repliesToAnother), answering(committed), true},
		"it reports a loss that is known":          {loss, answering(committed), true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{c.message}
			if c.chat != nil {
				objects = append(objects, c.chat)
			}
			s, r := begin(t, objects...)
			if got := !r.atRest(c.message); got != c.woken {
				t.Errorf("its own event wakes it: %t, want %t", got, c.woken)
			}
			if got := c.chat == nil || wakes(t, r, c.chat, c.message.GetName()); got != c.woken {
				t.Errorf("the event of its chat wakes it: %t, want %t", got, c.woken)
			}
			if _, err := r.Reconcile(t.Context(), request(c.message.GetName())); err != nil {
				t.Fatal(err)
			}
			if !c.woken && len(s.Writes()) > 0 {
				t.Errorf("there was something to do: %v", s.Writes())
			}
		})
	}
}

// wakes reports whether the chat wakes the message of that name when it is listed first.
func wakes(t *testing.T, r *Reconciler, chat *v1beta1.Chat, name string) bool {
	t.Helper()
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	r.chatHandler().Create(t.Context(), event.CreateEvent{Object: chat, IsInInitialList: true}, queue)
	end := request("no more")
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(-1000)}, end) // What is listed first waits for all else.
	for {
		if next, _ := queue.Get(); next == end {
			return false
		} else if next == request(name) {
			return true
		}
	}
}

func TestMessagesOfDeletedChatAreQueuedLast(t *testing.T) {
	_, r := begin(t, answered(), replied())
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	r.chatHandler().Delete(t.Context(), event.DeleteEvent{Object: answering(committed)}, queue)
	queue.Add(request("of another chat"))
	var order []string
	for range 3 {
		next, _ := queue.Get()
		order = append(order, next.Name)
	}
	if order[0] != "of another chat" || !slices.Contains(order, "a") || !slices.Contains(order, "c-3-1") {
		t.Errorf("they are looked at in the order %v", order)
	}
}

func TestLateReplyWakesWhatItFollows(t *testing.T) {
	m := replied(func(m *v1beta1.ChatMessage) { m.Spec.Follows = []v1beta1.CommittedMessage{{Message: "a"}} })
	for name, c := range map[string]struct {
		chat *v1beta1.Chat
		want int
	}{"the chat has not committed it": {answering(), 0}, "the chat has": {answering(committed), 1}} {
		_, r := begin(t, c.chat)
		queue := priorityqueue.New[reconcile.Request]("test")
		r.wakeFollowed(t.Context(), event.CreateEvent{Object: m}, queue)
		if got := queue.Len(); got != c.want {
			t.Errorf("%s: %d messages are woken, want %d", name, got, c.want)
		}
		queue.ShutDown()
	}
}
