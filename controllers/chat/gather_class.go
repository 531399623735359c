// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chatclass"
)

// classReader reads what the ChatClass of a chat says.
type classReader struct{ cache, live client.Reader }

// readClass finds the class of the chat. From here on the facts have the chat with the settings that are in force.
func (r *classReader) readClass(ctx context.Context, s *scope) error {
	var classes v1alpha1.ChatClassList
	in := client.InNamespace(s.facts.Chat.Namespace)
	if err := r.cache.List(ctx, &classes, in, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ChatClasses: %w", err)
	}
	class, missing := chatclass.Resolve(classes.Items, &s.facts.Chat.Spec)
	// One manifest may hold them all: the cache may show the chat before its class, and before the default, which has
	// something to say to every chat. No step may begin without them. Later a default that the cache does not show yet is
	// one that has just been made.
	if missing != nil || s.facts.Chat.Status.History.Version == 0 && chatclass.FirstDefault(classes.Items) == nil {
		classes = v1alpha1.ChatClassList{}
		if err := r.live.List(ctx, &classes, in); err != nil {
			return fmt.Errorf("listing ChatClasses: %w", err)
		}
		class, missing = chatclass.Resolve(classes.Items, &s.facts.Chat.Spec)
	}
	s.classes, s.facts.Blocked, s.facts.Namespace = classes.Items, missing, chatclass.Namespace(classes.Items)
	if class == nil {
		return nil
	}
	chat, ignored := chatclass.InForce(s.facts.Chat, class)
	s.facts.Class = &plan.Class{ChatClass: class, Said: s.facts.Chat, Ignored: ignored}
	s.facts.Chat = chat
	return nil
}
