// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/status"
)

// report writes the status of a User message, if it differs. A message that has had its last word is left alone.
func (r *Reconciler) report(ctx context.Context, s *seen) error {
	m := s.message
	if m.Spec.Generation != nil || status.MessageSettled(&m.Status) {
		return nil
	}
	next := m.DeepCopy()
	summary, ok := describe(&next.Status, s)
	if !ok {
		return nil
	}
	status.Message(&next.Status, summary, m.Generation, r.Now())
	if equality.Semantic.DeepEqual(m.Status, next.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("writing the status of message %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}

// describe says where the message stands. It returns false while that is about to change: the chat will take the message
// up at any moment.
func describe(st *v1alpha1.ChatMessageStatus, s *seen) (status.Summary, bool) {
	name := s.message.Name
	if s.chat == nil {
		st.State = v1alpha1.MessagePending
		return status.Working(v1alpha1.ReasonChatNotFound, "Chat "+s.message.Spec.ChatRef.Name+" does not exist: create it, or delete this message"), true
	}
	chat := &s.chat.Status
	switch {
	case chat.Turn != nil && chat.Turn.Message == name:
		status.Commit(st, string(s.chat.UID), chat.Turn)
		return status.OfTurn(chat.Turn, chat.LastError), true
	case slices.ContainsFunc(chat.Queue, func(q v1alpha1.QueuedMessage) bool { return q.Name == name }):
		st.State = v1alpha1.MessageQueued
		st.ChatUID = string(s.chat.UID)
		return status.Working(v1alpha1.ReasonQueued, "Waits for the turn under way to end"), true
	case st.State == v1alpha1.MessageCommitted:
		return ofReplacedTurn(s)
	case blocked(chat):
		st.State = v1alpha1.MessagePending
		return status.Working(v1alpha1.ReasonWaitingForModelConfig, "Chat "+s.chat.Name+" has no ChatModelConfig: see its conditions"), true
	}
	return status.Summary{}, false
}

// ofReplacedTurn says how a turn ended whose record was replaced by the next one in the same write: the message before
// that turn tells.
func ofReplacedTurn(s *seen) (status.Summary, bool) {
	if s.before == nil {
		return status.Summary{}, false
	}
	if g := s.before.Spec.Generation; g != nil && g.PendingCalls == 0 {
		return status.OfTurn(&v1alpha1.TurnStatus{Result: v1alpha1.TurnAnswered}, nil), true
	}
	return status.OfTurn(&v1alpha1.TurnStatus{Result: v1alpha1.TurnFailed}, nil), true
}

func blocked(chat *v1alpha1.ChatStatus) bool {
	for i := range chat.Conditions {
		if c := &chat.Conditions[i]; c.Type == v1alpha1.ConditionStalled && c.Reason == string(v1alpha1.ErrorModelConfigNotFound) {
			return true
		}
	}
	return false
}
