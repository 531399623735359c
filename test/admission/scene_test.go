// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
)

// scene is a chat in the middle of a turn, and one object of every other kind.
type scene struct {
	// chat is assigned to pod-a.
	chat *v1alpha1.Chat
	// asked is a person's message; replied the result of an earlier step.
	asked, replied *v1alpha1.ChatMessage
	config         *v1alpha1.ChatModelConfig
	approval       *v1alpha1.ToolApproval
	quota          *v1alpha1.ChatQuota
}

// newScene is written by those who may write it, so that it is a test as well.
func newScene(t *testing.T) scene {
	t.Helper()
	name := "chat-" + rand.String(8)
	s := scene{
		chat: newChat(name), asked: say(name), approval: approve(name),
		config: chattest.In(ns, chattest.Config(unique("model"))),
		quota: &v1alpha1.ChatQuota{ObjectMeta: meta("quota"), Spec: v1alpha1.ChatQuotaSpec{
			Generating: v1alpha1.GeneratingLimits{Chats: new(int32(1))},
		}},
	}
	mustCreate(t, governor, s.quota)
	mustCreate(t, chatter, s.chat)
	mustCreate(t, chatter, s.asked)
	mustCreate(t, approver, s.approval)
	mustCreate(t, owner, s.config)
	assign(t, s.chat, 1)
	s.replied = result(s.chat)
	mustCreate(t, podA, s.replied)
	assign(t, s.chat, 2)
	return s
}

// assign gives the chat to pod-a as the manager does.
func assign(t *testing.T, chat *v1alpha1.Chat, version int64) {
	t.Helper()
	chat.Status = v1alpha1.ChatStatus{
		ObservedGeneration: 1, Phase: v1alpha1.ChatRunning,
		History: v1alpha1.HistoryStatus{Version: version, Head: "m", Length: version},
		Generation: &v1alpha1.GenerationStatus{
			Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: podA.pod, ModelConfig: "model",
			StartedAt: metav1.NowMicro(),
		},
	}
	if err := as(t, manager).Status().Update(t.Context(), chat); err != nil {
		t.Fatalf("the manager writes the status of a chat: %v", err)
	}
}

func mustCreate(t testing.TB, a actor, o client.Object) {
	t.Helper()
	if err := as(t, a).Create(t.Context(), o); err != nil {
		t.Fatalf("%s creates %T %s: %v", a.name, o, o.GetName(), err)
	}
}

// unique is a name that begins so and is unlike any other.
func unique(prefix string) string { return prefix + "-" + rand.String(8) }

func meta(prefix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: unique(prefix)}
}

func newChat(name string) *v1alpha1.Chat { return chattest.In(ns, chattest.Chat(name)) }

// subChat is a chat below another one.
func subChat(name, parent string) *v1alpha1.Chat {
	return chattest.In(ns, chattest.Chat(name, chattest.ChildOf(parent)))
}

// newClass is a class of the namespace.
func newClass(change func(*v1alpha1.ChatClassSpec)) *v1alpha1.ChatClass {
	return chattest.In(ns, chattest.Class(unique("class"), change))
}

// say is a message of a person.
func say(chat string) *v1alpha1.ChatMessage {
	return chattest.In(ns, chattest.User(chat, unique("say")))
}

// toolOutput is a message with the result of a tool that a client runs.
func toolOutput(chat string) *v1alpha1.ChatMessage {
	return chattest.In(ns, chattest.Brings(chat, unique("output"),
		v1alpha1.ToolResult{ID: "call_1", Name: "screen", Output: `"dark"`}))
}

func approve(chat string) *v1alpha1.ToolApproval {
	return chattest.In(ns, chattest.Decides(chat, unique("approve"), "call_1", v1alpha1.DecisionApprove))
}

// result is what a generation pod answers the chat's attempt with, changed.
func result(chat *v1alpha1.Chat, change ...chattest.Reply) *v1alpha1.ChatMessage {
	return chattest.Answer(chat, append([]chattest.Reply{chattest.Says("Fine.")}, change...)...)
}
