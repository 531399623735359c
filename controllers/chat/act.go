// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/telemetry"
)

// actuator does what must be done before a status may say it, and what a status that was written asks for.
type actuator struct {
	// client reads from the cache and writes; live reads past the cache.
	client  client.Client
	live    client.Reader
	metrics *telemetry.Manager
	now     func() time.Time
}

// act does what must be done before the status may say it.
func (a *actuator) act(ctx context.Context, s *scope, todo *plan.Plan) error {
	for _, do := range []func(context.Context, *scope, *plan.Plan) error{
		a.putAside, a.putRecordingsAside, a.supersedeAll, a.rejectAll, a.settleOpenApprovals,
	} {
		if err := do(ctx, s, todo); err != nil {
			return err
		}
	}
	return nil
}

func (a *actuator) rejectAll(ctx context.Context, s *scope, todo *plan.Plan) error {
	for _, rejection := range todo.Rejected {
		if err := a.reject(ctx, s, rejection); err != nil {
			return err
		}
	}
	return nil
}

// reject tells the author of a message why it is refused. A conflict means that the message is queued or committed: the
// chat was read before it accepted the message.
func (a *actuator) reject(ctx context.Context, s *scope, rejection plan.Rejection) error {
	chat := s.facts.Chat
	message, err := readMessage(ctx, a.live, chat.Namespace, rejection.Message)
	if err != nil || message == nil {
		return err
	}
	if state := message.Status.State; state == v1beta1.MessageQueued || state == v1beta1.MessageCommitted {
		return apierrors.NewConflict(v1beta1.GroupVersion.WithResource("chatmessages").GroupResource(), rejection.Message,
			errors.New("the chat has accepted it meanwhile"))
	}
	message.Status.State = v1beta1.MessageRejected
	message.Status.ChatUID = string(chat.UID)
	conditions.Message(&message.Status, conditions.Failed(rejection.Reason, rejection.Note), message.Generation,
		s.facts.Now)
	if err := a.client.Status().Update(ctx, message); err != nil {
		return fmt.Errorf("rejecting message %s: %w", rejection.Message, err)
	}
	a.metrics.MessageRejected(string(rejection.Reason))
	return nil
}

// removeOrphan deletes a sub-chat whose parent has been deleted.
func (a *actuator) removeOrphan(ctx context.Context, chat *v1beta1.Chat) error {
	uid := chat.UID
	err := a.client.Delete(ctx, chat, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing chat %s/%s, whose parent is gone: %w", chat.Namespace, chat.Name, err)
	}
	return nil
}
