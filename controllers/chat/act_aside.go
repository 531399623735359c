// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/plan"
)

// putAside deals with the messages that left the history: generated ones are removed, people's own are kept and say
// that they were superseded. The chat has been committed without them before, so that a crash can lose nothing.
func (a *actuator) putAside(ctx context.Context, s *scope, todo *plan.Plan) error {
	if !todo.PutAside {
		return nil
	}
	chat := s.facts.Chat
	var messages v1beta1.ChatMessageList
	if err := a.live.List(ctx, &messages, client.InNamespace(chat.Namespace),
		client.MatchingFields{"spec.chatRef.name": chat.Name}); err != nil {
		return fmt.Errorf("listing the messages of chat %s: %w", chat.Name, err)
	}
	for _, m := range history.Left(chat, messages.Items) {
		if err := a.putMessageAside(ctx, s, m); err != nil {
			return fmt.Errorf("putting message %s aside: %w", m.Name, err)
		}
	}
	return nil
}

func (a *actuator) putMessageAside(ctx context.Context, s *scope, m *v1beta1.ChatMessage) error {
	if m.Spec.Generation == nil {
		return a.markSuperseded(ctx, s, m)
	}
	err := a.client.Delete(ctx, m, client.Preconditions{UID: &m.UID})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// putRecordingsAside deletes the recordings of messages that have left the history:
// those of a prompt or a reply that held one.
func (a *actuator) putRecordingsAside(ctx context.Context, s *scope, todo *plan.Plan) error {
	if !todo.PutAside {
		return nil
	}
	chat, steps := s.facts.Chat, &metav1.PartialObjectMetadataList{}
	steps.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatDebugStepList"))
	if err := a.live.List(ctx, steps, client.InNamespace(chat.Namespace),
		client.MatchingFields{"chatRef.name": chat.Name}); err != nil {
		return fmt.Errorf("listing the recordings of chat %s: %w", chat.Name, err)
	}
	for i := range steps.Items {
		step := &steps.Items[i]
		if !recordsLeft(chat.Status.Internal.Superseded, step.Annotations[v1beta1.AnnotationHistory]) {
			continue
		}
		if err := a.client.Delete(ctx, step, client.Preconditions{UID: &step.UID}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting recording %s: %w", step.Name, err)
		}
	}
	return nil
}

// recordsLeft reports whether a call that was made for a history of some version and length has to do with messages
// that have left it since: an edited message is the one before the range,
// and the reply to a prompt is the one behind it.
func recordsLeft(left *v1beta1.SupersededRange, of string) bool {
	version, length, ok := v1beta1.ParseDebugHistory(of)
	return ok && length >= left.FromIndex && version < left.BeforeVersion
}

func (a *actuator) supersedeAll(ctx context.Context, s *scope, todo *plan.Plan) error {
	for _, name := range todo.Superseded {
		if err := a.supersede(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// supersede marks a message that is dropped from the queue.
func (a *actuator) supersede(ctx context.Context, s *scope, name string) error {
	message, err := readMessage(ctx, a.live, s.facts.Chat.Namespace, name)
	if err != nil || message == nil {
		return err
	}
	if commit := history.RecordedBy(s.facts.Chat, name); commit != nil && !history.Is(commit, message) {
		return nil // It was created since, under the name of the one that left.
	}
	return a.markSuperseded(ctx, s, message)
}

func (a *actuator) markSuperseded(ctx context.Context, s *scope, m *v1beta1.ChatMessage) error {
	m.Status.ChatUID = string(s.facts.Chat.UID)
	conditions.Supersede(m, s.facts.Now)
	if err := a.client.Status().Update(ctx, m); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("marking message %s as superseded: %w", m.Name, err)
	}
	return nil
}
