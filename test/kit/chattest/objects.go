// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chattest makes the objects of tests in one vocabulary:
// chats, what people say, and what generation pods answer.
//
//	chattest.In(ns, chattest.Chat("c", chattest.Prompt("What time is it?")))
//	chattest.Answer(chat, chattest.Says("Wait."), chattest.Calls("call_1"))
//	chattest.Answer(chat, chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
//
// What an object needs and the test does not say is always the same. Nothing here reads a clock.
package chattest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
)

// In puts the object into the namespace.
func In[T metav1.Object](namespace string, o T) T {
	o.SetNamespace(namespace)
	return o
}

// Chat is a chat without a prompt, changed.
func Chat(name string, change ...func(*v1beta1.Chat)) *v1beta1.Chat {
	return changed(&v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: name}}, change)
}

// Prompt makes the chat begin with that message.
func Prompt(text string) func(*v1beta1.Chat) {
	return func(c *v1beta1.Chat) { c.Spec.Prompt = text }
}

// ChildOf makes the chat a sub-chat.
func ChildOf(parent string) func(*v1beta1.Chat) {
	return func(c *v1beta1.Chat) { c.Spec.ParentRef = &v1beta1.ChatReference{Name: parent} }
}

// UID gives the chat one, where no API server does.
func UID(uid types.UID) func(*v1beta1.Chat) {
	return func(c *v1beta1.Chat) { c.UID = uid }
}

// Generating is a chat, with the UID "uid", that has been generating the reply to message "a" for ten seconds.
func Generating() *v1beta1.Chat {
	return In("ns", Chat("c", UID("uid"), func(c *v1beta1.Chat) {
		c.Status = v1beta1.ChatStatus{
			Phase: v1beta1.ChatRunning, History: v1beta1.HistoryStatus{Version: 3, Head: "a", Length: 3},
			Turn: &v1beta1.TurnStatus{Message: "a", Index: 2, HistoryVersion: 3, StartedAt: Ago(time.Minute)},
			Generation: &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: "pod",
				StartedAt: *Ago(10 * time.Second)},
		}
	}))
}

// Now is the time of what happens at no other.
var Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Ago is so long before Now.
func Ago(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(Now.Add(-d))) }

// User is what a person says, "this is" with the message's name, changed.
func User(chat, name string, change ...func(*v1beta1.ChatMessage)) *v1beta1.ChatMessage {
	return changed(&v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.ChatMessageSpec{ChatRef: v1beta1.ChatReference{Name: chat}, Content: "this is " + name},
	}, change)
}

// Content makes the person say something else.
func Content(text string) func(*v1beta1.ChatMessage) {
	return func(m *v1beta1.ChatMessage) { m.Spec.Content = text }
}

// Defaulted makes the message as it is read from an API server.
func Defaulted(m *v1beta1.ChatMessage) { m.Spec.Role = v1beta1.RoleUser }

// CutsIn makes the person interrupt.
func CutsIn(m *v1beta1.ChatMessage) { m.Spec.WhenBusy = v1beta1.WhenBusyInterrupt }

// Brings is a message with what a client's tools yielded.
func Brings(chat, name string, results ...v1beta1.ToolResult) *v1beta1.ChatMessage {
	return &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.ChatMessageSpec{ChatRef: v1beta1.ChatReference{Name: chat}, Role: v1beta1.RoleTool,
			Parts: resultParts(results)},
	}
}

// Decides is a person's decision about a call of CallsRequiring.
func Decides(chat, name, call string, decision v1beta1.ApprovalDecision) *v1beta1.ToolApproval {
	return DecidesOf(chat, name, approval.Of(&v1beta1.ToolCall{ID: call, Name: tool, Input: "{}",
		RequiresAction: v1beta1.RequiresApproval}), decision)
}

// DecidesOf is a person's decision about a call, as the status of its chat shows it.
func DecidesOf(chat, name string, call v1beta1.PendingToolCall, decision v1beta1.ApprovalDecision,
) *v1beta1.ToolApproval {
	return &v1beta1.ToolApproval{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.ToolApprovalSpec{ChatRef: v1beta1.ChatReference{Name: chat}, ToolCallID: call.ID,
			Decision: decision, Digest: call.Digest},
	}
}

// Config is a model that nobody can reach, with what change makes of it.
func Config(name string, change ...func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
	c := &v1beta1.ChatModelConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.ChatModelConfigSpec{
			Provider: v1beta1.ProviderOpenAICompatible, Model: "scripted", BaseURL: "http://model.invalid:1/v1",
		},
	}
	changed(&c.Spec, change)
	return c
}

// Class is a ChatClass.
func Class(name string, change ...func(*v1beta1.ChatClassSpec)) *v1beta1.ChatClass {
	c := &v1beta1.ChatClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, change := range change {
		change(&c.Spec)
	}
	return c
}

// Default makes the configuration that of the chats which name none.
func Default(s *v1beta1.ChatModelConfigSpec) { s.Default = true }

func changed[T any](o *T, change []func(*T)) *T {
	for _, c := range change {
		c(o)
	}
	return o
}
