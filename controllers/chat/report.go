// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
)

// report writes the status, if it differs, on the resourceVersion that the decision rests on.
func (r *Reconciler) report(ctx context.Context, s *scope, todo *plan.Plan) error {
	chat := s.facts.Chat
	if !equality.Semantic.DeepEqual(chat.Status, todo.Status) {
		next := s.stored().DeepCopy() // The answer is decoded into it.
		next.Status = todo.Status
		if err := r.options.Client.Status().Update(ctx, next); err != nil {
			return fmt.Errorf("writing the status of chat %s/%s: %w", chat.Namespace, chat.Name, err)
		}
		r.memory.written.put(next)
		r.memory.costs.retain(keyOf(next), next.Status.Internal.SubChatCosts)
		r.gatherer.forgetShown(ctx, keyOf(next))
		r.observer.observe(ctx, s, next, todo)
	}
	r.memory.costs.put(chat, s.facts.BudgetsAbove, todo.Status.Cost)
	if err := r.actuator.settleApprovals(ctx, s, todo.Applied, v1beta1.ReasonApplied); err != nil {
		return err
	}
	pod := ""
	if todo.Status.Generation != nil {
		pod = todo.Status.Generation.Pod
	}
	r.options.Pods.Book(keyOf(chat), pod)
	return nil
}
