// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/fence"
)

// readSummary reads what a model says of the turn that has just ended, or is about to end with the result that was found.
func (r *Reconciler) readSummary(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	if t := chat.Status.Turn; t == nil || t.SummarySource != v1alpha1.TurnSummaryFromState {
		return nil
	}
	version := chat.Status.History.Version
	switch {
	case s.facts.Result != nil:
		version++
	case chat.Status.Phase != v1alpha1.ChatWaiting:
		return nil
	}
	summary, err := r.generated(ctx, chat.Namespace, fence.SummaryName(chat.Name, version))
	if err != nil || summary == nil {
		return err
	}
	s.facts.Summary = summary
	head, err := r.generated(ctx, chat.Namespace, chat.Status.History.Head)
	if head != nil && head.Spec.Generation.HistoryVersion == version-1 { // An older one is left where the reply was cut off.
		s.facts.HeadPod = head.Spec.Generation.Pod
	}
	return err
}

// generated reads a generated message; nil if there is none.
func (r *Reconciler) generated(ctx context.Context, namespace, name string) (*v1alpha1.ChatMessage, error) {
	m, err := r.message(ctx, r.Client, namespace, name)
	if err != nil || m == nil || m.Spec.Generation == nil {
		return nil, err
	}
	return m, nil
}
