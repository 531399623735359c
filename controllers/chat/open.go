// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/index"
)

// readOpen finds the messages of people that have yet to be taken up: User messages in the order to take them, the chat's
// prompt first, then in the order of their creation; clients' results; and the first message that was edited.
func (r *Reconciler) readOpen(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	var messages v1alpha1.ChatMessageList
	err := r.Client.List(ctx, &messages, client.InNamespace(chat.Namespace), client.MatchingFields{index.UnsettledByChat: chat.Name})
	if err != nil {
		return fmt.Errorf("listing open messages: %w", err)
	}
	var open []v1alpha1.ChatMessage
	for i := range messages.Items {
		switch m := &messages.Items[i]; {
		case m.Spec.Role == v1alpha1.RoleUser && isOpen(chat, m):
			open = append(open, *m)
		case m.Spec.Role == v1alpha1.RoleUser:
			s.noteEdit(m)
		case isOpen(chat, m):
			s.results = append(s.results, m.Name)
		}
	}
	if err := r.confirmEdit(ctx, s); err != nil {
		return err
	}
	if open, err = r.withPrompt(ctx, s, open); err != nil {
		return err
	}
	slices.SortFunc(open, func(a, b v1alpha1.ChatMessage) int { return takeOrder(chat, &a, &b) })
	return r.confirmOpen(ctx, s, open)
}

// confirmOpen notes the messages that are open beyond doubt.
func (r *Reconciler) confirmOpen(ctx context.Context, s *seen, open []v1alpha1.ChatMessage) error {
	for i := range open {
		if still, err := r.stillOpen(ctx, s.facts.Chat, &open[i]); err != nil {
			return err
		} else if still {
			s.facts.Open = append(s.facts.Open, messageFacts(&open[i]))
		}
	}
	return r.readBeginning(ctx, s)
}

// confirmEdit looks at the message itself: the cache may show an older one of its name.
func (r *Reconciler) confirmEdit(ctx context.Context, s *seen) error {
	if s.facts.Edited == nil {
		return nil
	}
	live, err := r.message(ctx, r.Live, s.facts.Chat.Namespace, s.facts.Edited.Name)
	s.facts.Edited = nil
	if live != nil {
		s.noteEdit(live)
	}
	return err
}

// noteEdit takes the message down if it was edited and none before it was.
func (s *seen) noteEdit(m *v1alpha1.ChatMessage) {
	if edited := editedOf(s.facts.Chat, m); edited != nil && (s.facts.Edited == nil || edited.Index < s.facts.Edited.Index) {
		s.facts.Edited = edited
	}
}

// isOpen reports whether a User message is neither in the history nor in the queue, nor of an earlier chat of this name.
func isOpen(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	switch {
	case !m.DeletionTimestamp.IsZero(), m.Status.State == v1alpha1.MessageCommitted:
		return false
	case refused(m):
		return false
	case m.Status.ChatUID != "" && m.Status.ChatUID != string(chat.UID):
		return false
	}
	if _, recorded := history.RecordedBy(chat, m.Name); recorded {
		return false
	}
	return !slices.ContainsFunc(chat.Status.Queue, func(q v1alpha1.QueuedMessage) bool { return q.Name == m.Name })
}

// refused reports whether the message was rejected or superseded, and has not been changed since. A change makes it open again.
func refused(m *v1alpha1.ChatMessage) bool {
	switch m.Status.State {
	case v1alpha1.MessageRejected, v1alpha1.MessageSuperseded:
		return m.Status.ObservedGeneration == m.Generation
	}
	return false
}

// editedOf is the message and its place, if it is committed and no longer says what it said then.
func editedOf(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) *plan.Edited {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	n, committed, givenUp := history.Of(chat, m), m.Status.ContentHash, m.Status.CallsGivenUpBefore
	if t := chat.Status.Turn; t != nil && t.Message == m.Name {
		committed, givenUp = t.ContentHash, t.CallsGivenUpBefore
	} else if m.Status.State != v1alpha1.MessageCommitted || m.Status.ChatUID != string(chat.UID) || !n.Placed ||
		n.Index >= chat.Status.History.Length || history.HasLeft(chat, m) {
		return nil
	}
	edited := &plan.Edited{Message: messageFacts(m), Parent: n.Parent, Index: n.Index, CallsGivenUpBefore: givenUp}
	if committed == edited.ContentHash {
		return nil
	}
	return edited
}

// stillOpen makes sure that no earlier turn took the message up, which the cache may not show yet. Before a turn's record
// is replaced, its message says that it was committed. So a message whose newest known write is later than the chat's
// last one says all there is to say: resourceVersions of custom resources count the writes of one store. Otherwise the
// API server is asked; the chat was read first, so that the answer is late enough.
func (r *Reconciler) stillOpen(ctx context.Context, chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) (bool, error) {
	if older(chat.ResourceVersion, m.ResourceVersion) {
		return true, nil
	}
	live, err := r.message(ctx, r.Live, m.Namespace, m.Name)
	if err != nil || live == nil {
		return false, err
	}
	return live.UID == m.UID && isOpen(chat, live), nil
}

func takeOrder(chat *v1alpha1.Chat, a, b *v1alpha1.ChatMessage) int {
	if prompt := promptName(chat); a.Name == prompt || b.Name == prompt {
		if a.Name == prompt {
			return -1
		}
		return 1
	}
	return byCreation(a, b, createdVersion(a), createdVersion(b))
}

// byCreation orders objects as they were created. Their timestamps have whole seconds; the resourceVersions that they were created with,
// which count the writes of one store, tell the rest.
func byCreation(a, b client.Object, versionA, versionB string) int {
	first, second := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	switch {
	case !first.Equal(&second):
		return first.Compare(second.Time)
	case older(versionA, versionB):
		return -1
	case older(versionB, versionA):
		return 1
	}
	return strings.Compare(a.GetName(), b.GetName())
}

// createdVersion is the resourceVersion that a message was created with: its own, unless its status has been written since and keeps
// it. If people have written to it in between, it comes behind those of the same second that they have not.
func createdVersion(m *v1alpha1.ChatMessage) string {
	if m.Status.CreatedVersion != "" {
		return m.Status.CreatedVersion
	}
	return m.ResourceVersion
}
