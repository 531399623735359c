// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
)

// act does what must be done before the status may say it.
func (r *Reconciler) act(ctx context.Context, s *seen, todo *plan.Plan) error {
	for _, do := range []func(context.Context, *seen, *plan.Plan) error{
		r.recordEnded, r.recordResults, r.putAside, r.putRecordingsAside, r.supersedeAll, r.rejectAll, r.settleOpenApprovals,
	} {
		if err := do(ctx, s, todo); err != nil {
			return err
		}
	}
	return nil
}

// recordEnded sees to it that the message of a turn knows its place in the history and how the turn ended before the turn
// record, which says the same, is replaced. As a rule the message controller has long written it.
func (r *Reconciler) recordEnded(ctx context.Context, s *seen, todo *plan.Plan) error {
	for _, ended := range todo.Replaced {
		if err := r.recordTurn(ctx, s, ended); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) recordTurn(ctx context.Context, s *seen, ended *v1alpha1.TurnStatus) error {
	chat := s.facts.Chat
	for _, reader := range []client.Reader{r.Client, r.Live} {
		message, err := r.message(ctx, reader, chat.Namespace, ended.Message)
		if err != nil {
			return err
		}
		if message != nil && saysHowItEnded(message, ended) {
			return nil
		}
		if message == nil || reader == r.Client {
			continue
		}
		conditions.Commit(&message.Status, string(chat.UID), ended)
		conditions.Message(&message.Status, conditions.OfTurn(ended, chat.Status.LastError), message.Generation, s.facts.Now)
		if err := r.Client.Status().Update(ctx, message); err != nil {
			return fmt.Errorf("recording the place of message %s: %w", ended.Message, err)
		}
	}
	return nil
}

func saysHowItEnded(m *v1alpha1.ChatMessage, ended *v1alpha1.TurnStatus) bool {
	return m.Status.State == v1alpha1.MessageCommitted && conditions.Compare(ended, &m.Status) == 0 && conditions.MessageSettled(m)
}

func (r *Reconciler) rejectAll(ctx context.Context, s *seen, todo *plan.Plan) error {
	for _, rejection := range todo.Rejected {
		if err := r.reject(ctx, s, rejection); err != nil {
			return err
		}
	}
	return nil
}

// reject tells the author of a message why it is refused.
func (r *Reconciler) reject(ctx context.Context, s *seen, rejection plan.Rejection) error {
	chat := s.facts.Chat
	message, err := r.message(ctx, r.Live, chat.Namespace, rejection.Message)
	if err != nil || message == nil {
		return err
	}
	message.Status.State = v1alpha1.MessageRejected
	message.Status.ChatUID = string(chat.UID)
	conditions.Message(&message.Status, conditions.Failed(rejection.Reason, rejection.Note), message.Generation, s.facts.Now)
	if err := r.Client.Status().Update(ctx, message); err != nil {
		return fmt.Errorf("rejecting message %s: %w", rejection.Message, err)
	}
	r.Metrics.MessageRejected(rejection.Reason)
	return nil
}
