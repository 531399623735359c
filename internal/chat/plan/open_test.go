// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

func TestMessageIsOpenUntilItsChatSettlesIt(t *testing.T) {
	chat := chattest.Chat("c", chattest.UID("u"))
	for name, c := range map[string]struct {
		state    v1beta1.MessageState
		observed int64
		open     bool
	}{
		"pending":                     {v1beta1.MessagePending, 1, true},
		"committed":                   {v1beta1.MessageCommitted, 1, false},
		"committed, and edited since": {v1beta1.MessageCommitted, 0, false},
		"rejected":                    {v1beta1.MessageRejected, 1, false},
		"rejected, and edited since":  {v1beta1.MessageRejected, 0, true},
		"superseded":                  {v1beta1.MessageSuperseded, 1, false},
	} {
		m := chattest.User("c", "m")
		m.Generation = 1
		m.Status = v1beta1.ChatMessageStatus{State: c.state, ChatUID: "u", ObservedGeneration: c.observed}
		if got := IsOpen(chat, m); got != c.open {
			t.Errorf("%s: it is open: %t", name, got)
		}
	}
}

func TestMessagesAreTakenInOrderOfCreation(t *testing.T) {
	created := func(name, version string, second int) *v1beta1.ChatMessage {
		m := chattest.User("c", name)
		m.ResourceVersion, m.CreationTimestamp = version, metav1.NewTime(now.Add(time.Duration(second)*time.Second))
		return m
	}
	reported := created("b", "30", 1) // Its status was written after it was created.
	reported.Status.CreatedVersion = "9"
	all := []*v1beta1.ChatMessage{created("d", "12", 2), created("a", "10", 1), created("c-prompt", "13", 3), reported}
	chat := chattest.Chat("c", chattest.Prompt("hello"))
	slices.SortFunc(all, func(a, b *v1beta1.ChatMessage) int { return TakeOrder(chat, a, b) })
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	if diff := cmp.Diff([]string{"c-prompt", "b", "a", "d"}, names); diff != "" {
		t.Errorf("the order differs (-want +got):\n%s", diff)
	}
}

func TestEachTokenIsOneRequest(t *testing.T) {
	chat := chattest.Chat("c")
	chat.Annotations = map[string]string{v1beta1.AnnotationInterrupt: "2", v1beta1.AnnotationClear: "1"}
	chat.Status.Requests = []v1beta1.HandledRequest{
		{Kind: v1beta1.RequestInterrupt, Token: "1"}, {Kind: v1beta1.RequestClear, Token: "1"}}
	want := []Request{{Kind: v1beta1.RequestInterrupt, Token: "2"}}
	if diff := cmp.Diff(want, RequestsOf(chat)); diff != "" {
		t.Errorf("the requests differ (-want +got):\n%s", diff)
	}
}

func TestArchivingChatTakesNoMessageUp(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"))
	waits := func(f *Facts) { f.Archive, f.FamilyAtWork, f.Open = true, "sub", messages(false, "b") }
	w.pass(waits).want("Waiting v2 c-1-1/2 - []").pass(waits).want("Waiting v2 c-1-1/2 - []")
	if w.chat.Status.Archived || len(w.last.Taken) > 0 {
		t.Errorf("archived: %t, taken up: %v", w.chat.Status.Archived, w.last.Taken)
	}
}

func TestEditDoesNotLoseTheAttemptItBegins(t *testing.T) {
	w := newWorld(t).say("a").pass(func(f *Facts) {
		f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}}
		f.PodLost = true // That of the attempt which the edit ends.
	})
	w.want("Running v2 a/1 1:GenerateAssistant []")
	if st := w.chat.Status; st.Retry != nil || st.Internal.Attempt.LostAttempts != 0 {
		t.Errorf("the new attempt counts as lost: %+v, %+v", st.Retry, st.Internal.Attempt)
	}
}
