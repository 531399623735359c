// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/internal/chat/plan"
)

// report writes the status, if it differs, on the resourceVersion that the decision rests on.
func (r *Reconciler) report(ctx context.Context, s *scope, todo *plan.Plan) error {
	chat := s.facts.Chat
	if !equality.Semantic.DeepEqual(chat.Status, todo.Status) {
		next := chat.DeepCopy()
		next.Status = todo.Status
		if err := r.Client.Status().Update(ctx, next); err != nil {
			return fmt.Errorf("writing the status of chat %s/%s: %w", chat.Namespace, chat.Name, err)
		}
		r.written.put(next)
		logWrite(ctx, next, todo)
		r.observe(ctx, s, todo)
		for _, notice := range todo.Notices {
			r.Recorder.Eventf(next, nil, corev1.EventTypeWarning, notice.Reason, notice.Action, "%s", notice.Note)
		}
	}
	if err := r.settleApprovals(ctx, s, todo.Applied, true); err != nil {
		return err
	}
	pod := ""
	if todo.Status.Generation != nil {
		pod = todo.Status.Generation.Pod
	}
	r.Ledger.Book(keyOf(chat).String(), pod)
	return nil
}
