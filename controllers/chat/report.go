// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/internal/turn"
)

// report writes the status, if it differs, on the resourceVersion that the decision rests on.
func (r *Reconciler) report(ctx context.Context, s *seen, plan *turn.Plan) error {
	chat := s.facts.Chat
	if !equality.Semantic.DeepEqual(chat.Status, plan.Status) {
		next := chat.DeepCopy()
		next.Status = plan.Status
		if err := r.Client.Status().Update(ctx, next); err != nil {
			return fmt.Errorf("writing the status of chat %s/%s: %w", chat.Namespace, chat.Name, err)
		}
		r.written.put(next)
		logWrite(ctx, next, plan)
		r.observe(ctx, s, plan)
		for _, notice := range plan.Notices {
			r.Recorder.Eventf(next, nil, corev1.EventTypeWarning, notice.Reason, notice.Action, "%s", notice.Note)
		}
	}
	if err := r.settleApprovals(ctx, s, plan.Applied, true); err != nil {
		return err
	}
	pod := ""
	if plan.Status.Generation != nil {
		pod = plan.Status.Generation.Pod
	}
	r.Ledger.Book(keyOf(chat).String(), pod)
	return nil
}
