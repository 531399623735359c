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
	classes, err := r.readClasses(ctx, s)
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
func (r *classReader) readClasses(ctx context.Context, s *scope) ([]v1alpha1.ChatClass, error) {
	chat := s.facts.Chat
	var classes v1alpha1.ChatClassList
	if err := r.cache.List(ctx, &classes, client.InNamespace(chat.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ChatClasses: %w", err)
	}
	r.restOn(s, classes.Items)
	_, missing := chatclass.Resolve(classes.Items, &chat.Spec)
	if missing == nil {
		if chatclass.FirstDefault(classes.Items) != nil {
			return classes.Items, nil
		}
		speaks, err := r.defaultSpeaks(ctx, s)
		if err != nil || !speaks {
			s.defaultUnread = true
			return classes.Items, err
		}
	}
	return r.readFreshClasses(ctx, s, missing != nil)
}

// readFreshClasses reads classes that are new enough to say that the default is missing, or the one that is named.
func (r *classReader) readFreshClasses(ctx context.Context, s *scope, named bool) ([]v1alpha1.ChatClass, error) {
	var classes v1alpha1.ChatClassList
	asOf, _, err := r.fresh.absent(ctx, s, &v1alpha1.ChatClass{}, &classes, named)
	if err != nil {
		return nil, fmt.Errorf("listing ChatClasses: %w", err)
	}
	r.restOn(s, classes.Items)
	_, missing := chatclass.Resolve(classes.Items, &s.facts.Chat.Spec)
	if missing != nil || chatclass.FirstDefault(classes.Items) == nil {
		s.judge(asOf)
	}
	return classes.Items, nil
}

// restOn says that the decision rests on the classes: they name models, too.
func (r *classReader) restOn(s *scope, classes []v1alpha1.ChatClass) {
	for i := range classes {
		s.restOn(r.fresh.specWritten(&classes[i]))
	}
}

// defaultSpeaks reports whether the chat's first step may begin or is under way, which it may not without what the
// default says. Later, a default that the cache does not show yet is one that has just been made. A message that was
// taken up is the first version of the history, the step that answers it the second. A prompt becomes a message within
// a pass.
func (r *classReader) defaultSpeaks(ctx context.Context, s *scope) (bool, error) {
	chat := s.facts.Chat
	if chat.Status.History.Version > 0 || chat.Spec.Prompt != "" {
		return chat.Status.History.Version <= 1, nil
	}
	said, err := r.fresh.said(ctx, s)
	return len(said) > 0, err
}
