// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/text/content"
)

// report writes the status of a User message, if it differs. A message that has had its last word is left alone.
func (r *Reconciler) report(ctx context.Context, s *scope) error {
	m := s.message
	if m.Spec.Generation != nil || settled(s) {
		return nil
	}
	next := m.DeepCopy()
	summary, ok := describe(&next.Status, s)
	if !ok {
		return nil
	}
	if next.Status.State == v1alpha1.MessagePending && m.Status.State == "" {
		next.Status.CreatedVersion = m.ResourceVersion
	}
	conditions.Message(&next.Status, summary, m.Generation, r.Now())
	if equality.Semantic.DeepEqual(m.Status, next.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("writing the status of message %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}

// settled reports whether the status is final. That of a message whose turn begins again, after an edit or a deletion,
// is not. What an old view of the chat says of a turn that is over counts for nothing:
// the chat controller may have recorded the end since.
func settled(s *scope) bool {
	if s.message.Spec.IsNote() || refused(s.message) {
		return conditions.MessageSettled(s.message)
	}
	if turn, in := recorded(s); turn != nil {
		switch age := conditions.Compare(turn, in, &s.message.Status); {
		case age < 0:
			return true
		case age > 0:
			return false
		}
	}
	return conditions.MessageSettled(s.message)
}

// recorded is what the chat's status says of the turn that the message began: it does of the newest one, and of the one
// before until its message has said how it ended; nil of any other.
func recorded(s *scope) (*v1alpha1.TurnStatus, *v1alpha1.TurnInternalStatus) {
	switch {
	case s.chat == nil:
		return nil, nil
	case isTurn(&s.chat.Status, s.message):
		return s.chat.Status.Turn, &s.chat.Status.Internal.Turn
	case isPreviousTurn(&s.chat.Status, s.message):
		return conditions.PreviousTurn(s.chat.Status.Internal.PreviousTurn)
	}
	return nil, nil
}

// refused reports whether the message was rejected or superseded: no chat takes it up as it is. An old view of the chat
// may still show it as that of the turn, and it need not have said so itself by then.
func refused(m *v1alpha1.ChatMessage) bool {
	return m.Status.State == v1alpha1.MessageRejected || m.Status.State == v1alpha1.MessageSuperseded
}

func isTurn(chat *v1alpha1.ChatStatus, m *v1alpha1.ChatMessage) bool {
	return chat.Turn != nil && chat.Turn.Message == m.Name
}

func isPreviousTurn(chat *v1alpha1.ChatStatus, m *v1alpha1.ChatMessage) bool {
	return chat.Internal.PreviousTurn != nil && chat.Internal.PreviousTurn.Message == m.Name
}

// describe says where the message stands. It returns false while that is about to change: the chat will take the
// message, or an edit of it, up at any moment.
func describe(st *v1alpha1.ChatMessageStatus, s *scope) (conditions.Summary, bool) {
	name := s.message.Name
	if s.chat == nil {
		st.State = v1alpha1.MessagePending
		return conditions.Working(v1alpha1.ReasonChatNotFound, "Chat "+s.message.Spec.ChatRef.Name+
			" does not exist: create it, or delete this message"), true
	}
	chat := &s.chat.Status
	switch {
	case s.message.Spec.IsNote():
		return conditions.Note(st, s.chat), true
	case s.message.Spec.Role == v1alpha1.RoleTool:
		return describeResults(st, s)
	}
	switch {
	case isTurn(chat, s.message):
		return unlessEdited(st, s, describeTurn(st, s))
	case isPreviousTurn(chat, s.message):
		turn, in := conditions.PreviousTurn(chat.Internal.PreviousTurn)
		conditions.Commit(st, string(s.chat.UID), turn, in)
		return unlessEdited(st, s, conditions.OfTurn(turn, nil))
	case slices.ContainsFunc(chat.Queue, func(q v1alpha1.QueuedMessage) bool { return q.Name == name }):
		st.State = v1alpha1.MessageQueued
		st.ChatUID = string(s.chat.UID)
		return conditions.Working(v1alpha1.ReasonQueued, "Waits for the turn under way to end"), true
	case st.State == v1alpha1.MessageCommitted:
		return unlessEdited(st, s, asBefore(st))
	}
	return describePending(st, s)
}

// unlessEdited is what is said of a message as it was committed. An edit of it begins the conversation again at any
// moment, or, in an archived chat, once that is taken back.
func unlessEdited(st *v1alpha1.ChatMessageStatus, s *scope, committed conditions.Summary) (conditions.Summary, bool) {
	switch {
	case st.ContentHash == content.Of(s.message):
		st.BeforeEdit = nil
		return committed, true
	case s.chat.Status.Archived:
		return conditions.HoldEdit(st, s.chat.Name, committed), true
	}
	return committed, false
}

// describeTurn says how the turn stands that the message began.
func describeTurn(st *v1alpha1.ChatMessageStatus, s *scope) conditions.Summary {
	chat := &s.chat.Status
	// The message alone still knows how the turn ended, or why it failed, if it has said so of this turn.
	told, unknown := saysHow(chat, st), chat.Turn.Result == v1alpha1.TurnFailed && chat.LastError == nil
	conditions.Commit(st, string(s.chat.UID), chat.Turn, &chat.Internal.Turn)
	if told && (chat.Turn.Result == "" || unknown) {
		return asBefore(st)
	}
	return ofTurn(chat)
}

// describePending says what keeps the chat from taking the message up. It returns false if nothing does.
func describePending(st *v1alpha1.ChatMessageStatus, s *scope) (conditions.Summary, bool) {
	chat := &s.chat.Status
	switch {
	case chat.Archived:
		st.State = v1alpha1.MessagePending
		return conditions.Working(v1alpha1.ReasonChatArchived,
			"Chat "+s.chat.Name+" is archived: the message is answered once spec.archived is false there"), true
	case s.archiving:
		st.State = v1alpha1.MessagePending
		return conditions.Working(v1alpha1.ReasonChatArchived,
			"Chat "+s.chat.Name+" is about to be archived: the message is answered once spec.archived is false there"), true
	case blocked(chat) || withoutPrompt(chat):
		st.State = v1alpha1.MessagePending
		return conditions.Working(v1alpha1.ReasonWaitingForChat, "Chat "+s.chat.Name+" cannot begin: see its conditions"),
			true
	}
	return conditions.Summary{}, false
}

// ofTurn says how the turn of the message stands. Why the chat gets no generation pod, the message says too.
func ofTurn(chat *v1alpha1.ChatStatus) conditions.Summary {
	ready := meta.FindStatusCondition(chat.Conditions, v1alpha1.ConditionReady)
	if chat.Turn.Result == "" && v1alpha1.ReasonOf(ready) == v1alpha1.ReasonGenerationPodRefused {
		return conditions.Working(v1alpha1.ReasonOf(ready), ready.Message)
	}
	return conditions.OfTurn(chat.Turn, chat.LastError)
}

// saysHow reports whether the message says already how the chat's turn ended.
func saysHow(chat *v1alpha1.ChatStatus, st *v1alpha1.ChatMessageStatus) bool {
	return conditions.Compare(chat.Turn, &chat.Internal.Turn, st) == 0 && asBefore(st).Ready != metav1.ConditionUnknown
}

// describeResults says where a message with a client's results stands. The chat itself refuses one.
func describeResults(st *v1alpha1.ChatMessageStatus, s *scope) (conditions.Summary, bool) {
	chat := &s.chat.Status
	results := chat.Internal.Turn.Results
	switch {
	case results != nil && results.Message == s.message.Name:
		return conditions.CommitResults(st, string(s.chat.UID), results), true
	case st.State == v1alpha1.MessageCommitted || chat.Phase != v1alpha1.ChatRequiresAction:
		return conditions.Summary{}, false
	}
	st.State = v1alpha1.MessagePending
	return conditions.Working(v1alpha1.ReasonWaitingForApproval,
		"Waits until the other calls have been approved or denied"), anyUndecided(chat.RequiresAction)
}

func anyUndecided(required *v1alpha1.RequiresActionStatus) bool {
	return required != nil && slices.ContainsFunc(required.ToolCalls, func(c v1alpha1.PendingToolCall) bool {
		return c.Kind == v1alpha1.RequiresApproval && c.Decision == nil
	})
}

// asBefore is what the status says already, for a message that was changed in another way than its content. Of one that
// was edited it is what was said before.
func asBefore(st *v1alpha1.ChatMessageStatus) conditions.Summary {
	if before := st.BeforeEdit; before != nil {
		return conditions.Summary{Ready: before.Status, Reason: before.Reason, Message: before.Message}
	}
	ready := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return conditions.Working(v1alpha1.ReasonBeingAnswered, "")
	}
	return conditions.Summary{Ready: ready.Status, Reason: v1alpha1.ReasonOf(ready), Message: ready.Message}
}

// cannotBegin are the reasons for which a chat takes no message up.
var cannotBegin = []v1alpha1.ErrorReason{v1alpha1.ErrorModelConfigNotFound, v1alpha1.ErrorModelConfigDisabled,
	v1alpha1.ErrorModelConfigNotAllowed, v1alpha1.ErrorChatClassNotFound,
	v1alpha1.ErrorParentNotFound, v1alpha1.ErrorFamilyLimitExceeded}

// withoutPrompt reports whether spec.prompt cannot become the chat's first message, behind which every other one waits.
func withoutPrompt(chat *v1alpha1.ChatStatus) bool {
	ready := meta.FindStatusCondition(chat.Conditions, v1alpha1.ConditionReady)
	reason := v1alpha1.ReasonOf(ready)
	return reason == v1alpha1.ReasonPromptRefused || reason == v1alpha1.ReasonPromptNameTaken
}

func blocked(chat *v1alpha1.ChatStatus) bool {
	for i := range chat.Conditions {
		if c := &chat.Conditions[i]; c.Type == v1alpha1.ConditionStalled &&
			slices.Contains(cannotBegin, v1alpha1.ErrorReason(c.Reason)) {
			return true
		}
	}
	return false
}
