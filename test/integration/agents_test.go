// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/agents"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// spawns is that the call of the key starts a sub-chat.
func spawns(chat, key, prompt string) v1beta1.AgentChange {
	return v1beta1.AgentChange{Key: key, Chat: agents.Name(chat, key),
		Spawn: &v1beta1.AgentSpawn{Type: v1beta1.AgentGeneral, Prompt: prompt, Title: "A task"}}
}

// begun waits until a sub-chat is there and has an attempt.
func begun(t *testing.T, ns, name string) *v1beta1.Chat {
	t.Helper()
	eventually(t, "sub-chat "+name+" is there", func() bool {
		return cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &v1beta1.Chat{}) == nil
	})
	return assigned(t, ns, name, 1, 1)
}

// done waits until what the chat's model has decided is done with.
func done(t *testing.T, ns string) {
	t.Helper()
	eventually(t, "what was decided is done with",
		func() bool { return chatIn(t, ns, "root").Status.Internal.AgentsOf == "" })
}

// calling is a chat whose model has called a tool, and waits for the results.
func calling(t *testing.T, ns string) *v1beta1.Chat {
	t.Helper()
	chat := newChat(ns, "root", "hello")
	chat.Spec.SystemPrompt, chat.Spec.SubAgents = "Be brief.", &v1beta1.SubAgentSettings{Enabled: new(true)}
	create(t, chat)
	answers(t, assigned(t, ns, "root", 1, 1), chattest.Calls("a"))
	return assigned(t, ns, "root", 2, 1)
}

func TestSubChatStartsAfterResultIsCommitted(t *testing.T) {
	ns := parallel(t)
	first, second := spawns("root", "uid.1.a", "Look here."), spawns("root", "uid.1.b", "Look there.")
	answers(t, calling(t, ns), chattest.Results("a"), chattest.Changes(first, second))
	for _, change := range []v1beta1.AgentChange{first, second} {
		sub := begun(t, ns, change.Chat)
		if sub.Spec.SystemPrompt != "Be brief." || sub.Spec.Prompt != change.Spawn.Prompt || sub.Spec.Title != "A task" ||
			sub.Spec.ParentRef.Name != "root" || sub.Spec.SubAgents != nil || sub.Status.Internal.ParentUID == "" {
			t.Errorf("the sub-chat is %+v", sub.Spec)
		}
	}
	root := assigned(t, ns, "root", 3, 1)
	if root.Status.Internal.AgentsOf != "" {
		done(t, ns)
	}
	// Deleting one of them starts none again.
	check.OK(t, cluster.Client.Delete(t.Context(), chatIn(t, ns, first.Chat)))
	answers(t, root, chattest.Says("Fine."))
	waitForReady(t, ns, "root", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	var sub v1beta1.Chat
	err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: first.Chat}, &sub)
	if !apierrors.IsNotFound(err) && sub.DeletionTimestamp == nil {
		t.Errorf("it was started again: %v", err)
	}
}

func TestChatTalksToItsSubChats(t *testing.T) {
	ns := parallel(t)
	spawn := spawns("root", "uid.1.a", "Look here.")
	answers(t, calling(t, ns), chattest.Results("a"), chattest.Changes(spawn))
	sub := begun(t, ns, spawn.Chat)
	stranger := newChat(ns, "stranger", "hello")
	create(t, stranger)
	answers(t, assigned(t, ns, "stranger", 1, 1), chattest.Says("Hi."))
	waitForReady(t, ns, "stranger", metav1.ConditionTrue, v1beta1.ReasonAnswered)

	answers(t, assigned(t, ns, "root", 3, 1), chattest.Calls("b"))
	answers(t, assigned(t, ns, "root", 4, 1), chattest.Results("b"), chattest.Changes(
		v1beta1.AgentChange{Key: "uid.3.b", Chat: spawn.Chat, Message: &v1beta1.AgentMessage{Content: "And there."}},
		v1beta1.AgentChange{Key: "uid.3.c", Chat: spawn.Chat, Interrupt: &v1beta1.AgentInterrupt{}},
		v1beta1.AgentChange{Key: "uid.3.d", Chat: "stranger", Message: &v1beta1.AgentMessage{Content: "Obey."}},
		v1beta1.AgentChange{Key: "uid.3.e", Chat: "nobody", Message: &v1beta1.AgentMessage{Content: "Obey."}},
	))
	eventually(t, "the sub-chat is interrupted", func() bool {
		return chatIn(t, ns, spawn.Chat).Status.Phase == v1beta1.ChatInterrupting
	})
	answers(t, sub, chattest.Interrupted(), chattest.Says("Well"))
	// The message starts a turn in the write that commits the reply, or in the next one if it is not cached by then.
	var next *v1beta1.Chat
	eventually(t, "the sub-chat has its second turn", func() bool {
		next = chatIn(t, ns, spawn.Chat)
		return next.Status.Turn != nil && next.Status.Turn.Message != sub.Status.Turn.Message
	})
	check.Equal(t, "it continues with", "And there.", messageIn(t, ns, next.Status.Turn.Message).Spec.Content)
	assigned(t, ns, "root", 5, 1)
	done(t, ns)
	check.Equal(t, "a chat that is not below was told something", 2, chatIn(t, ns, "stranger").Status.History.Length)
}

func TestRejectedSubChatEmitsEventWithoutBlockingTurn(t *testing.T) {
	ns := parallel(t)
	root := calling(t, ns)
	noneOf(t, ns, "count/chats.parley.dev")
	eventually(t, "the quota is in force", func() bool {
		err := cluster.Client.Create(t.Context(), newChat(ns, "probe", "hello"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "exceeded quota")
	})
	spawn := spawns("root", "uid.1.a", "Look here.")
	answers(t, root, chattest.Results("a"), chattest.Changes(spawn))
	answers(t, assigned(t, ns, "root", 3, 1), chattest.Says("Fine."))
	waitForReady(t, ns, "root", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	eventually(t, "an Event says why", func() bool {
		notes := eventsOf(t, ns, "root", v1beta1.EventAgentRejected)
		return len(notes) == 1 && strings.Contains(notes[0], "refuses what the model wants of sub-chat "+spawn.Chat) &&
			strings.Contains(notes[0], "exceeded quota")
	})
}
