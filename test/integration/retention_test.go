// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// kept is a chat that goes so many seconds after it came to rest.
func kept(ns, name string, seconds int32) *v1beta1.Chat {
	chat := newChat(ns, name, "hello")
	chat.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: &seconds}
	return chat
}

// chatIsGone reports whether the API server has no such chat.
func chatIsGone(t *testing.T, ns, name string) bool {
	t.Helper()
	var chat v1beta1.Chat
	err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &chat)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}

// answersPrompt lets the chat's prompt be answered.
func answersPrompt(t *testing.T, ns, name string) {
	t.Helper()
	answers(t, assigned(t, ns, name, 1, 1), chattest.Says("Fine."))
	waitForReady(t, ns, name, metav1.ConditionTrue, v1beta1.ReasonAnswered)
}

func TestExpiredIdleChatIsDeletedWithDescendants(t *testing.T) {
	ns := parallel(t)
	create(t, kept(ns, "c", 1))
	first := assigned(t, ns, "c", 1, 1)
	sub := newChat(ns, "sub", "look it up")
	sub.Spec.ParentRef = &v1beta1.ChatReference{Name: "c"}
	create(t, sub)
	ofSub := assigned(t, ns, "sub", 1, 1)
	answers(t, first, chattest.Says("Fine."))
	create(t, kept(ns, "alone", 1))
	answers(t, assigned(t, ns, "alone", 1, 1), chattest.Says("Fine."))
	eventually(t, "a chat without sub-chats goes", func() bool { return chatIsGone(t, ns, "alone") })
	if c := chatIn(t, ns, "c").Status; c.IdleSince == nil || c.ExpiresAt != nil {
		t.Errorf("with a sub-chat at work it rests since %v, and goes at %v", c.IdleSince, c.ExpiresAt)
	}
	answers(t, ofSub, chattest.Says("It is the CNI."))
	eventually(t, "the family goes", func() bool { return chatIsGone(t, ns, "c") && chatIsGone(t, ns, "sub") })
	eventually(t, "their messages go", func() bool {
		var messages v1beta1.ChatMessageList
		check.OK(t, cluster.Client.List(t.Context(), &messages, client.InNamespace(ns)))
		return len(messages.Items) == 0
	})
	eventually(t, "an Event says so", func() bool {
		return len(eventsOf(t, ns, "c", v1beta1.EventExpired)) == 1
	})
}

func TestAMessageKeepsAChat(t *testing.T) {
	ns := parallel(t)
	create(t, kept(ns, "c", 3600))
	answersPrompt(t, ns, "c")
	if chatIn(t, ns, "c").Status.ExpiresAt == nil {
		t.Error("nothing says when it goes")
	}
	create(t, say(ns, "c", "second"))
	second := assigned(t, ns, "c", 3, 1)
	if second.Status.IdleSince != nil || second.Status.ExpiresAt != nil {
		t.Errorf("a chat at work goes at %v", second.Status.ExpiresAt)
	}
	patch(t, second, `{"spec":{"retention":{"deleteAfterSeconds":1}}}`)
	create(t, kept(ns, "other", 1))
	answers(t, assigned(t, ns, "other", 1, 1), chattest.Says("Fine."))
	eventually(t, "a chat goes that came to rest later", func() bool { return chatIsGone(t, ns, "other") })
	if chatIsGone(t, ns, "c") {
		t.Fatal("a chat at work has gone")
	}
	answers(t, second, chattest.Says("Fine, too."))
	eventually(t, "the chat goes", func() bool { return chatIsGone(t, ns, "c") })
}

func TestStartingManagerFindsExpiredChats(t *testing.T) {
	ns := namespace(t)
	create(t, kept(ns, "c", 3600))
	answersPrompt(t, ns, "c")
	restart := stopManager(t)
	rested := time.Since(chatIn(t, ns, "c").Status.IdleSince.Time)
	const left = 3 * time.Second
	patch(t, chatIn(t, ns, "c"), `{"spec":{"retention":{"deleteAfterSeconds":%d}}}`, int((rested+left)/time.Second))
	restart()
	eventually(t, "the chat goes", func() bool { return chatIsGone(t, ns, "c") })
}

func TestClassRetentionAppliesToIdleChats(t *testing.T) {
	ns := parallel(t)
	class := newClass(ns, "short-lived")
	create(t, class)
	create(t, ofClass(ns, "c", "short-lived"))
	answersPrompt(t, ns, "c")
	since := chatIn(t, ns, "c").Status.IdleSince
	if since == nil {
		t.Fatal("nothing says since when it rests")
	}
	goes := func(what string, after time.Duration) {
		t.Helper()
		eventually(t, what, func() bool {
			at := chatIn(t, ns, "c").Status.ExpiresAt
			if after == 0 {
				return at == nil
			}
			return at != nil && at.Sub(since.Time) == after
		})
	}
	goes("it is kept", 0)
	patchSettings(t, class, `{"spec":{"defaults":{"retention":{"deleteAfterSeconds":7200}}}}`)
	goes("it goes in two hours", 2*time.Hour)
	patchSettings(t, class, `{"spec":{"restrictions":{"retention":{"deleteAfterSeconds":3600}}}}`)
	goes("it goes in an hour, at the latest", time.Hour)
	patch(t, chatIn(t, ns, "c"), `{"spec":{"archived":true}}`)
	eventually(t, "it is archived", func() bool { return chatIn(t, ns, "c").Status.Archived })
	since = chatIn(t, ns, "c").Status.IdleSince
	goes("the count restarts", time.Hour)
	patchSettings(t, class, `{"spec":{"defaults":{"retention":null},"restrictions":null}}`)
	goes("it is kept again", 0)
	patchSettings(t, class, `{"spec":{"defaults":{"retention":{"deleteAfterSeconds":1}}}}`)
	eventually(t, "what has rested for longer goes", func() bool { return chatIsGone(t, ns, "c") })
}

func TestClassKeepsItsNewestChats(t *testing.T) {
	ns := parallel(t)
	class := newClass(ns, "few")
	class.Spec.Keep = &v1beta1.ChatKeep{Chats: new(int32(1)), FailedChats: new(int32(1))}
	create(t, class)
	create(t, ofClass(ns, "failed", "few"))
	answers(t, assigned(t, ns, "failed", 1, 1), chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	eventually(t, "one chat fails", func() bool { return chatIn(t, ns, "failed").Status.Phase == v1beta1.ChatError })
	create(t, ofClass(ns, "held", "few"))
	answersPrompt(t, ns, "held")
	patch(t, chatIn(t, ns, "held"), `{"spec":{"suspend":true}}`)
	create(t, ofClass(ns, "first", "few"))
	answersPrompt(t, ns, "first")
	rested := chatIn(t, ns, "first").Status.IdleSince.Time
	eventually(t, "another second begins", func() bool { return time.Since(rested) > time.Second }) // The API has no less.
	create(t, ofClass(ns, "second", "few"))
	answersPrompt(t, ns, "second")
	eventually(t, "the oldest one is deleted", func() bool { return chatIsGone(t, ns, "first") })
	for _, name := range []string{"failed", "held", "second"} {
		if chatIsGone(t, ns, name) {
			t.Errorf("%s is deleted, too", name)
		}
	}
	eventually(t, "an Event says so", func() bool { return len(eventsOf(t, ns, "first", v1beta1.EventExpired)) == 1 })
}
