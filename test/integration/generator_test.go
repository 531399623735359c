// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// read reads an object from the API server.
func read[T any, P interface {
	*T
	client.Object
}](t *testing.T, ns, name string) P {
	t.Helper()
	o := P(new(T))
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o); err != nil {
		t.Fatalf("reading %T %s: %v", o, name, err)
	}
	return o
}

// chatIn reads a chat.
func chatIn(t *testing.T, ns, name string) *v1beta1.Chat {
	t.Helper()
	return read[v1beta1.Chat](t, ns, name)
}

func messageIn(t *testing.T, ns, name string) *v1beta1.ChatMessage {
	t.Helper()
	return read[v1beta1.ChatMessage](t, ns, name)
}

// assigned waits until the chat has an attempt at the given history version, and returns the chat.
func assigned(t *testing.T, ns, name string, version int64, attempt int32) *v1beta1.Chat {
	t.Helper()
	var chat *v1beta1.Chat
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

// started creates a chat with a prompt, and returns it with its first attempt.
func started(t *testing.T, ns, name, prompt string) *v1beta1.Chat {
	t.Helper()
	create(t, newChat(ns, name, prompt))
	return assigned(t, ns, name, 1, 1)
}

// queued creates a message, and waits until it is queued.
func queued(t *testing.T, ns, chat, name string) {
	t.Helper()
	create(t, say(ns, chat, name))
	waitForMessage(t, ns, name, metav1.ConditionUnknown, v1beta1.ReasonQueued)
}

// answers lets the chat's generation pod answer the attempt under way.
func answers(t *testing.T, chat *v1beta1.Chat, replies ...chattest.Reply) {
	t.Helper()
	create(t, chattest.Answer(chat, replies...))
}

func say(ns, chat, name string) *v1beta1.ChatMessage {
	return chattest.In(ns, chattest.User(chat, name, chattest.Content("hello")))
}

func newChat(ns, name, prompt string) *v1beta1.Chat {
	return chattest.In(ns, chattest.Chat(name, chattest.Prompt(prompt)))
}

// printable is the status as people read it.
func printable(status v1beta1.ChatStatus) string {
	text, err := yaml.Marshal(status)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
