// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
)

// recordEnded sees to it that the message of a turn knows its place in the history and how the turn ended before the
// chat's status says it no longer. As a rule the message controller has written it meanwhile.
func (a *actuator) recordEnded(ctx context.Context, s *scope, todo *plan.Plan) error {
	for i := range todo.Replaced {
		if err := a.recordTurn(ctx, s, &todo.Replaced[i]); err != nil {
			return err
		}
	}
	return nil
}

// recordTurn writes how a turn ended into the status of its message, unless that is gone or says so already.
func (a *actuator) recordTurn(ctx context.Context, s *scope, ended *plan.TurnRecord) error {
	chat := s.facts.Chat
	cached, err := readMessage(ctx, a.client, chat.Namespace, ended.Message)
	if err != nil || saysSo(cached, ended) {
		return err
	}
	message, err := readMessage(ctx, a.live, chat.Namespace, ended.Message)
	if err != nil || message == nil || saysSo(message, ended) {
		return err
	}
	conditions.Commit(&message.Status, string(chat.UID), ended.TurnStatus, &ended.Internal)
	conditions.Message(&message.Status, conditions.OfTurn(ended.TurnStatus, chat.Status.LastError), message.Generation,
		s.facts.Now)
	if err := a.client.Status().Update(ctx, message); err != nil {
		return fmt.Errorf("recording the place of message %s: %w", ended.Message, err)
	}
	return nil
}

// saysSo reports whether the message's own status says how the turn ended.
func saysSo(message *v1alpha1.ChatMessage, ended *plan.TurnRecord) bool {
	return message != nil && saysHowItEnded(message) &&
		conditions.Compare(ended.TurnStatus, &ended.Internal, &message.Status) == 0
}

// recordResults sees to it that a message with a client's results knows its place in the history before the chat's
// status stops saying it.
func (a *actuator) recordResults(ctx context.Context, s *scope, todo *plan.Plan) error {
	places := []*v1alpha1.MessagePlace{s.facts.Chat.Status.Internal.Turn.Results}
	for i := range todo.Replaced {
		places = append(places, todo.Replaced[i].Internal.Results)
	}
	for _, place := range places {
		next := todo.Status.Internal.Turn.Results
		if place == nil || next != nil && next.Message == place.Message {
			continue
		}
		if err := a.recordPlace(ctx, s, place); err != nil {
			return err
		}
	}
	return nil
}

func (a *actuator) recordPlace(ctx context.Context, s *scope, place *v1alpha1.MessagePlace) error {
	chat := s.facts.Chat
	message, err := readMessage(ctx, a.live, chat.Namespace, place.Message)
	if err != nil || message == nil || message.Status.State == v1alpha1.MessageCommitted {
		return err
	}
	summary := conditions.CommitResults(&message.Status, string(chat.UID), place)
	conditions.Message(&message.Status, summary, message.Generation, s.facts.Now)
	if err := a.client.Status().Update(ctx, message); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("recording the place of message %s: %w", place.Message, err)
	}
	return nil
}
