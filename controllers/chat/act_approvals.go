// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/index"
)

// refuseApprovals says of decisions about calls of a chat that does not exist that they came to nothing.
func (a *actuator) refuseApprovals(ctx context.Context, key types.NamespacedName) error {
	var open v1beta1.ToolApprovalList
	if err := a.client.List(ctx, &open, client.InNamespace(key.Namespace),
		client.MatchingFields{index.OpenApprovalsByChat: key.Name}); err != nil {
		return fmt.Errorf("listing the approvals of chat %s: %w", key, err)
	}
	chat := v1beta1.Chat{}
	if len(open.Items) == 0 || !apierrors.IsNotFound(a.live.Get(ctx, key, &chat)) {
		return nil // The cache shows the chat soon.
	}
	chat.Namespace = key.Namespace
	for i := range open.Items {
		if err := a.settleApprovals(ctx, &scope{facts: plan.Facts{Chat: &chat, Now: a.now()}}, []string{open.Items[i].Name},
			v1beta1.ReasonNotPending); err != nil {
			return err
		}
	}
	return nil
}

// settleApprovals says what became of decisions. A late cache shows decisions as open that say it already. Only Applied
// replaces what they say, because the status of the chat records it.
func (a *actuator) settleApprovals(ctx context.Context, s *scope, names []string,
	outcome v1beta1.ConditionReason) error {
	for _, name := range names {
		var approval v1beta1.ToolApproval
		err := a.live.Get(ctx, client.ObjectKey{Namespace: s.facts.Chat.Namespace, Name: name}, &approval)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading approval %s: %w", name, err)
		}
		if approval.Status.ObservedGeneration == approval.Generation && outcome != v1beta1.ReasonApplied {
			continue
		}
		conditions.Approval(&approval, outcome, s.facts.Now)
		if err := a.client.Status().Update(ctx, &approval); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("writing the status of approval %s: %w", name, err)
		}
	}
	return nil
}

// settleOpenApprovals says of decisions that they do not apply,
// or that the chat's status says already that they do.
func (a *actuator) settleOpenApprovals(ctx context.Context, s *scope, todo *plan.Plan) error {
	if len(todo.NotPending)+len(todo.Mismatched) > 0 {
		if err := a.checkCurrent(ctx, s.facts.Chat); err != nil {
			return err
		}
	}
	if err := a.settleApprovals(ctx, s, todo.NotPending, v1beta1.ReasonNotPending); err != nil {
		return err
	}
	if err := a.settleApprovals(ctx, s, todo.Mismatched, v1beta1.ReasonDigestMismatch); err != nil {
		return err
	}
	return a.settleApprovals(ctx, s, s.applied, v1beta1.ReasonApplied)
}

// checkCurrent returns a conflict unless the chat is as it was read. A call that does not wait in an old view of the
// chat may wait by now.
func (a *actuator) checkCurrent(ctx context.Context, chat *v1beta1.Chat) error {
	var current v1beta1.Chat
	err := a.live.Get(ctx, client.ObjectKeyFromObject(chat), &current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading chat %s: %w", chat.Name, err)
	}
	if err != nil || current.ResourceVersion != chat.ResourceVersion {
		return apierrors.NewConflict(v1beta1.GroupVersion.WithResource("chats").GroupResource(), chat.Name,
			errors.New("it has changed since it was read"))
	}
	return nil
}
