// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
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
	defer func() {
		if t.Failed() && chat != nil {
			t.Logf("chat %s has the status:\n%s", name, printable(chat.Status))
		}
	}()
	eventually(t, fmt.Sprintf("chat %s has attempt %d at version %d", name, attempt, version), func() bool {
		chat = chatIn(t, ns, name)
		g := chat.Status.Generation
		return g != nil && chat.Status.History.Version == version && g.Attempt == attempt
	})
	return chat
}

// answers lets the chat's generation pod answer the attempt under way.
func answers(t *testing.T, chat *v1alpha1.Chat, replies ...chattest.Reply) {
	t.Helper()
	create(t, chattest.Answer(chat, replies...))
}

func say(ns, chat, name string) *v1alpha1.ChatMessage {
	return chattest.In(ns, chattest.User(chat, name, chattest.Content("hello")))
}

func newChat(ns, name, prompt string) *v1alpha1.Chat {
	return chattest.In(ns, chattest.Chat(name, chattest.Prompt(prompt)))
}

// printable is the status as people read it.
func printable(status v1alpha1.ChatStatus) string {
	text, err := yaml.Marshal(status)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
