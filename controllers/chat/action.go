// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/index"
)

// readAction reads what calls wait for, and what people and clients have to say about them.
func (r *Reconciler) readAction(ctx context.Context, s *seen) error {
	for _, read := range []func(context.Context, *seen) error{r.readCalls, r.readResults, r.readApprovals} {
		if err := read(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// readCalls reads the calls that the chat is about to ask people for.
func (r *Reconciler) readCalls(ctx context.Context, s *seen) error {
	name := plan.CallingMessage(&s.facts)
	if name == "" {
		return nil
	}
	message, err := r.message(ctx, r.Live, s.facts.Chat.Namespace, name)
	if err != nil || message == nil {
		return err
	}
	s.facts.Calls = plan.RequiredCalls(&s.facts, message)
	return nil
}

// readResults reads what clients answered, oldest first.
func (r *Reconciler) readResults(ctx context.Context, s *seen) error {
	for _, name := range s.results {
		message, err := r.message(ctx, r.Live, s.facts.Chat.Namespace, name)
		if err != nil {
			return err
		}
		if message != nil && plan.IsOpen(s.facts.Chat, message) {
			s.facts.Results = append(s.facts.Results, message)
		}
	}
	slices.SortFunc(s.facts.Results, func(a, b *v1alpha1.ChatMessage) int { return plan.TakeOrder(s.facts.Chat, a, b) })
	return nil
}

// readApprovals reads what people decided, oldest first.
func (r *Reconciler) readApprovals(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	var list v1alpha1.ToolApprovalList
	if err := r.Client.List(ctx, &list, client.InNamespace(chat.Namespace), client.MatchingFields{index.OpenApprovalsByChat: chat.Name}); err != nil {
		return fmt.Errorf("listing the approvals of chat %s: %w", chat.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ToolApproval) int { // Nobody has written to an open one.
		return plan.ByCreation(&a, &b, a.ResourceVersion, b.ResourceVersion)
	})
	for i := range list.Items {
		approval := &list.Items[i]
		if plan.Recorded(chat, approval) {
			s.applied = append(s.applied, approval.Name)
			continue
		}
		s.facts.Approvals = append(s.facts.Approvals, plan.Approval{ToolDecision: v1alpha1.ToolDecision{
			ID: approval.Spec.ToolCallID, Decision: approval.Spec.Decision, Approval: approval.Name, Comment: approval.Spec.Comment,
		}})
	}
	return nil
}

// refuseApprovals says of decisions about calls of a chat that does not exist that they came to nothing.
func (r *Reconciler) refuseApprovals(ctx context.Context, key types.NamespacedName) error {
	var open v1alpha1.ToolApprovalList
	if err := r.Client.List(ctx, &open, client.InNamespace(key.Namespace), client.MatchingFields{index.OpenApprovalsByChat: key.Name}); err != nil {
		return fmt.Errorf("listing the approvals of chat %s: %w", key, err)
	}
	chat := v1alpha1.Chat{}
	if len(open.Items) == 0 || !apierrors.IsNotFound(r.Live.Get(ctx, key, &chat)) {
		return nil // The cache shows the chat soon.
	}
	chat.Namespace = key.Namespace
	for i := range open.Items {
		if err := r.settleApprovals(ctx, &seen{facts: plan.Facts{Chat: &chat, Now: r.Now()}}, []string{open.Items[i].Name}, false); err != nil {
			return err
		}
	}
	return nil
}

// settleApprovals says what became of decisions.
func (r *Reconciler) settleApprovals(ctx context.Context, s *seen, names []string, applied bool) error {
	for _, name := range names {
		var approval v1alpha1.ToolApproval
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.facts.Chat.Namespace, Name: name}, &approval)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading approval %s: %w", name, err)
		}
		conditions.Approval(&approval, applied, s.facts.Now)
		if err := r.Client.Status().Update(ctx, &approval); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("writing the status of approval %s: %w", name, err)
		}
	}
	return nil
}

// recordResults sees to it that a message with a client's results knows its place in the history before the chat's status
// stops saying it.
func (r *Reconciler) recordResults(ctx context.Context, s *seen, todo *plan.Plan) error {
	places := []*v1alpha1.MessagePlace{plan.PlaceOfResults(s.facts.Chat.Status.Turn)}
	for _, ended := range todo.Replaced {
		places = append(places, plan.PlaceOfResults(ended))
	}
	for _, place := range places {
		next := plan.PlaceOfResults(todo.Status.Turn)
		if place == nil || next != nil && next.Message == place.Message {
			continue
		}
		if err := r.recordPlace(ctx, s, place); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) recordPlace(ctx context.Context, s *seen, place *v1alpha1.MessagePlace) error {
	chat := s.facts.Chat
	message, err := r.message(ctx, r.Live, chat.Namespace, place.Message)
	if err != nil || message == nil || message.Status.State == v1alpha1.MessageCommitted {
		return err
	}
	summary := conditions.CommitResults(&message.Status, string(chat.UID), place)
	conditions.Message(&message.Status, summary, message.Generation, s.facts.Now)
	if err := r.Client.Status().Update(ctx, message); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("recording the place of message %s: %w", place.Message, err)
	}
	return nil
}

// settleOpenApprovals says of decisions that they came to nothing, or that the chat's status says already that they count.
func (r *Reconciler) settleOpenApprovals(ctx context.Context, s *seen, todo *plan.Plan) error {
	if err := r.settleApprovals(ctx, s, todo.NotPending, false); err != nil {
		return err
	}
	return r.settleApprovals(ctx, s, s.applied, true)
}
