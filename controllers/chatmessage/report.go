// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/index"
	"parley.dev/parley/internal/status"
)

// report writes the status of a User message, if it differs. A message that has had its last word is left alone.
func (r *Reconciler) report(ctx context.Context, s *seen) error {
	m := s.message
	if m.Spec.Generation != nil || settled(s) {
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

// settled tells whether the status has had its last word. A message that begins the chat's turn anew, after an edit, has not.
func settled(s *seen) bool {
	if s.chat != nil && isTurn(&s.chat.Status, s.message) && s.chat.Status.Turn.HistoryVersion != s.message.Status.HistoryVersion {
		return false
	}
	return status.MessageSettled(s.message)
}

func isTurn(chat *v1alpha1.ChatStatus, m *v1alpha1.ChatMessage) bool {
	return chat.Turn != nil && chat.Turn.Message == m.Name
}

// describe says where the message stands. It returns false while that is about to change: the chat will take the message,
// or an edit of it, up at any moment.
func describe(st *v1alpha1.ChatMessageStatus, s *seen) (status.Summary, bool) {
	name := s.message.Name
	if s.chat == nil {
		st.State = v1alpha1.MessagePending
		return status.Working(v1alpha1.ReasonChatNotFound, "Chat "+s.message.Spec.ChatRef.Name+" does not exist: create it, or delete this message"), true
	}
	chat := &s.chat.Status
	if s.message.Spec.Role == v1alpha1.RoleTool {
		return describeResults(st, s)
	}
	switch {
	case isTurn(chat, s.message):
		status.Commit(st, string(s.chat.UID), chat.Turn)
		if chat.Turn.Result == v1alpha1.TurnFailed && chat.LastError == nil { // The message alone still knows why.
			return asBefore(st), chat.Turn.ContentHash == index.ContentHash(s.message)
		}
		return status.OfTurn(chat.Turn, chat.LastError), chat.Turn.ContentHash == index.ContentHash(s.message)
	case slices.ContainsFunc(chat.Queue, func(q v1alpha1.QueuedMessage) bool { return q.Name == name }):
		st.State = v1alpha1.MessageQueued
		st.ChatUID = string(s.chat.UID)
		return status.Working(v1alpha1.ReasonQueued, "Waits for the turn under way to end"), true
	case st.State == v1alpha1.MessageCommitted:
		return asBefore(st), st.ContentHash == index.ContentHash(s.message)
	case chat.Archived:
		st.State = v1alpha1.MessagePending
		return status.Working(v1alpha1.ReasonChatArchived, "Chat "+s.chat.Name+" is put away: the message is taken up once spec.archived is false there"), true
	case blocked(chat):
		st.State = v1alpha1.MessagePending
		return status.Working(v1alpha1.ReasonWaitingForChat, "Chat "+s.chat.Name+" cannot begin: see its conditions"), true
	}
	return status.Summary{}, false
}

// describeResults says where a message with a client's results stands. The chat itself refuses one.
func describeResults(st *v1alpha1.ChatMessageStatus, s *seen) (status.Summary, bool) {
	chat := &s.chat.Status
	switch {
	case chat.Turn != nil && chat.Turn.Results != nil && chat.Turn.Results.Message == s.message.Name:
		return status.CommitResults(st, string(s.chat.UID), chat.Turn.Results), true
	case st.State == v1alpha1.MessageCommitted || chat.Phase != v1alpha1.ChatRequiresAction:
		return status.Summary{}, false
	}
	st.State = v1alpha1.MessagePending
	return status.Working(v1alpha1.ReasonWaitingForApproval, "Waits until the other calls have been approved or denied"), anyUndecided(chat.RequiresAction)
}

func anyUndecided(required *v1alpha1.RequiresActionStatus) bool {
	return required != nil && slices.ContainsFunc(required.ToolCalls, func(c v1alpha1.PendingToolCall) bool {
		return c.Kind == v1alpha1.AwaitsApproval && c.Decision == nil
	})
}

// asBefore is what the status says already, for a message that was changed in another way than its content.
func asBefore(st *v1alpha1.ChatMessageStatus) status.Summary {
	ready := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return status.Working(v1alpha1.ReasonBeingAnswered, "")
	}
	return status.Summary{Ready: ready.Status, Reason: ready.Reason, Message: ready.Message}
}

// cannotBegin are the reasons for which a chat takes no message up.
var cannotBegin = []v1alpha1.ErrorReason{v1alpha1.ErrorModelConfigNotFound, v1alpha1.ErrorParentNotFound, v1alpha1.ErrorFamilyLimitExceeded}

func blocked(chat *v1alpha1.ChatStatus) bool {
	for i := range chat.Conditions {
		if c := &chat.Conditions[i]; c.Type == v1alpha1.ConditionStalled && slices.Contains(cannotBegin, v1alpha1.ErrorReason(c.Reason)) {
			return true
		}
	}
	return false
}
