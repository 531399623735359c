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
type classReader struct {
	cache, live client.Reader
	fresh       *freshReader
}

// readClass finds the class of the chat. From here on the facts have the chat with the settings that are in force.
func (r *classReader) readClass(ctx context.Context, s *scope) error {
	classes, err := r.readClasses(ctx, s.facts.Chat)
	if err != nil {
		return err
	}
	class, missing := chatclass.Resolve(classes, &s.facts.Chat.Spec)
	s.classes, s.facts.Blocked, s.facts.Namespace = classes, missing, chatclass.Namespace(classes)
	if class == nil {
		return nil
	}
	chat, ignored := chatclass.InForce(s.facts.Chat, class)
	s.facts.Class = &plan.Class{ChatClass: class, Said: s.facts.Chat, Ignored: ignored}
	s.facts.Chat = chat
	return nil
}

// readClasses reads the ChatClasses of the chat's namespace. One manifest may hold them all: the cache may show the
// chat before its class, and before the default, which has something to say to every chat.
func (r *classReader) readClasses(ctx context.Context, chat *v1alpha1.Chat) ([]v1alpha1.ChatClass, error) {
	var classes v1alpha1.ChatClassList
	in := client.InNamespace(chat.Namespace)
	if err := r.cache.List(ctx, &classes, in, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ChatClasses: %w", err)
	}
	enough, err := r.suffice(ctx, chat, classes.Items)
	if err != nil || enough {
		return classes.Items, err
	}
	classes = v1alpha1.ChatClassList{}
	if err := r.fresh.list(ctx, &v1alpha1.ChatClass{}, &classes, chat); err != nil {
		return nil, fmt.Errorf("listing ChatClasses: %w", err)
	}
	return classes.Items, nil
}

// suffice reports whether classes that the cache shows are all that the chat needs: the one that it names and, before
// its first step, the default. Later, a default that the cache does not show yet is one that has just been made.
func (r *classReader) suffice(ctx context.Context, chat *v1alpha1.Chat, classes []v1alpha1.ChatClass) (bool, error) {
	if _, missing := chatclass.Resolve(classes, &chat.Spec); missing != nil {
		return false, nil
	}
	if chat.Status.History.Version > 0 || chatclass.FirstDefault(classes) != nil {
		return true, nil
	}
	said, err := r.fresh.said(ctx, chat)
	return len(said) == 0, err // No step begins without one.
}
