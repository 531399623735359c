// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
)

// A manager whose cache is late does not know that another one has begun the chat, nor that somebody has deleted the
// prompt since.
func TestPromptIsCreatedOnlyBeforeChatBegins(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*v1beta1.Chat)
		made      bool
	}{
		"nothing has happened":      {func(*v1beta1.Chat) {}, true},
		"another manager has begun": {func(c *v1beta1.Chat) { c.Status.History.Version = 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			seen := w.chat()
			seen.Spec.Prompt = "Hello."
			if err := w.Direct.Update(t.Context(), seen); err != nil {
				t.Fatal(err)
			}
			now := seen.DeepCopy()
			c.meanwhile(now)
			if err := w.Direct.Status().Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			w.promptMade(seen, c.made)
		})
	}
	t.Run("it is another chat of its name", func(t *testing.T) {
		w := newWorld(t)
		gone := w.chat()
		gone.UID, gone.Spec.Prompt = "another-uid", "Hello."
		w.promptMade(gone, false)
	})
}

// promptMade has the controller create the prompt of a chat as it saw that.
func (w *world) promptMade(seen *v1beta1.Chat, want bool) {
	w.Helper()
	s := &scope{facts: plan.Facts{Chat: seen, PromptMissing: true}}
	if err := w.actuator.createPrompt(w.Context(), s); err != nil {
		w.Fatal(err)
	}
	var prompt v1beta1.ChatMessage
	err := w.Direct.Get(w.Context(), types.NamespacedName{Namespace: "ns", Name: "c-prompt"}, &prompt)
	if (err == nil) != want || len(s.facts.Open) == 1 != want || s.facts.PromptMissing {
		w.Errorf("there is %q: %v; open are %v", prompt.Name, err, s.facts.Open)
	}
}
