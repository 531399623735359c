// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/testing/playedpod"
)

// chatIn reads a chat.
func chatIn(t *testing.T, ns, name string) *v1alpha1.Chat {
	t.Helper()
	var chat v1alpha1.Chat
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &chat); err != nil {
		t.Fatalf("reading chat %s: %v", name, err)
	}
	return &chat
}

func messageIn(t *testing.T, ns, name string) *v1alpha1.ChatMessage {
	t.Helper()
	var m v1alpha1.ChatMessage
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &m); err != nil {
		t.Fatalf("reading message %s: %v", name, err)
	}
	return &m
}

// assigned waits until the chat has an attempt at the given history version, and returns the chat.
func assigned(t *testing.T, ns, name string, version int64, attempt int32) *v1alpha1.Chat {
	t.Helper()
	var chat *v1alpha1.Chat
	eventually(t, fmt.Sprintf("chat %s has attempt %d at version %d", name, attempt, version), func() bool {
		chat = chatIn(t, ns, name)
		g := chat.Status.Generation
		return g != nil && chat.Status.History.Version == version && g.Attempt == attempt
	})
	return chat
}

// answer is what a generation pod would create for the chat's attempt.
func answer(chat *v1alpha1.Chat, change func(*v1alpha1.ChatMessage)) *v1alpha1.ChatMessage {
	m := playedpod.Answer(chat)
	if change != nil {
		change(m)
	}
	return m
}

// callTool makes the answer one that calls a tool.
func callTool(m *v1alpha1.ChatMessage) {
	m.Spec.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartToolCall,
		ToolCall: &v1alpha1.ToolCall{ID: "call_1", Name: "current_time", Input: "{}"}}}
	m.Spec.Generation.PendingCalls = 1
	m.Spec.Generation.Preview = ""
}

// toolResult makes the answer one that holds the result of that call.
func toolResult(m *v1alpha1.ChatMessage) {
	m.Spec.Role = v1alpha1.RoleTool
	m.Spec.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartToolResult,
		ToolResult: &v1alpha1.ToolResult{ID: "call_1", Name: "current_time", Output: "noon"}}}
	m.Spec.Generation.Preview = ""
}

func failed(reason v1alpha1.ErrorReason) func(*v1alpha1.ChatMessage) {
	return func(m *v1alpha1.ChatMessage) {
		m.Spec.Parts = nil
		m.Spec.Generation.Preview = ""
		m.Spec.Generation.Usage = nil
		m.Spec.Generation.Outcome = v1alpha1.OutcomeFailed
		m.Spec.Generation.Error = &v1alpha1.GenerationError{Reason: reason, Message: "what is wrong", Advice: "what to do",
			StatusCode: 401}
	}
}

func say(ns, chat, name string) *v1alpha1.ChatMessage {
	return &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: chat}, Content: "hello"},
	}
}

func newChat(ns, name, prompt string) *v1alpha1.Chat {
	return &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.ChatSpec{Prompt: prompt}}
}
