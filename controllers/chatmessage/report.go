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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
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
	if next.Status.State == v1beta1.MessagePending && m.Status.State == "" {
		next.Status.CreatedVersion = m.ResourceVersion
	}
	conditions.Message(&next.Status, summary, m.Generation, r.Now())
	if equality.Semantic.DeepEqual(m.Status, next.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("writing the status of message %s/%s: %w", m.Namespace, m.Name, err)
	}
	r.written.put(next, r.Now())
	return nil
}

// settled reports whether the status is final. That of a message whose turn begins again, after an edit or a deletion,
// is not. What an old view of the chat says of a turn that is over counts for nothing.
func settled(s *scope) bool {
	st := &s.message.Status
	if st.State == v1beta1.MessageRejected && st.HistoryVersion == 0 && isHeld(s) {
		return false
	}
	if !s.message.Spec.IsNote() && !refused(s.message) && (s.commit != nil || s.outcome != nil) {
		switch told := max(st.HistoryVersion, st.ResumedVersion); {
		case s.version() < told:
			return true
		case s.version() > told:
			return false
		}
	}
	return conditions.MessageSettled(s.message)
}

// isHeld reports whether the chat has the message. If two managers work for one chat for a moment, one can reject what
// the other has accepted. The chat decides, because each of its writes is fenced.
func isHeld(s *scope) bool {
	return s.chat != nil && placeInQueue(s) >= 0 || s.commit != nil || s.outcome != nil
}

// placeInQueue is the index of the message in the queue of its chat; -1: it is not queued.
func placeInQueue(s *scope) int {
	return slices.IndexFunc(s.chat.Status.Queue, func(q v1beta1.QueuedMessage) bool { return q.Name == s.message.Name })
}

// refused reports whether the message was rejected or superseded: no chat takes it up as it is. An old view of the chat
// may still show it as that of the turn, and it need not have said so itself by then.
func refused(m *v1beta1.ChatMessage) bool {
	return m.Status.State == v1beta1.MessageRejected || m.Status.State == v1beta1.MessageSuperseded
}

// describe says where the message stands. It returns false while that is about to change: the chat will take the
// message, or an edit of it, up at any moment.
func describe(st *v1beta1.ChatMessageStatus, s *scope) (conditions.Summary, bool) {
	if s.chat == nil {
		st.State = v1beta1.MessagePending
		return conditions.Working(v1beta1.ReasonChatNotFound, "Chat "+s.message.Spec.ChatRef.Name+
			" does not exist: create it, or delete this message"), true
	}
	chat := &s.chat.Status
	switch {
	case s.message.Spec.IsNote():
		return conditions.Note(st, s.chat), true
	case s.message.Spec.Role == v1beta1.RoleTool:
		return describeResults(st, s)
	}
	queued := placeInQueue(s)
	switch {
	case queued >= 0:
		st.State = v1beta1.MessageQueued
		st.ChatUID = string(s.chat.UID)
		return conditions.Queued(&chat.Queue[queued]), true
	case s.commit != nil && s.outcome == nil && !saysHow(st, s): // What records it has yet to be seen.
		return conditions.Summary{}, false
	case s.commit != nil:
		return unlessEdited(st, s, describeTurn(st, s))
	case st.State == v1beta1.MessageCommitted:
		return unlessEdited(st, s, asBefore(st))
	}
	return describePending(st, s)
}

// unlessEdited is what is said of a message as it was committed. An edit of it begins the conversation again at any
// moment, or, in an archived chat, once that is taken back.
func unlessEdited(st *v1beta1.ChatMessageStatus, s *scope, committed conditions.Summary) (conditions.Summary, bool) {
	switch {
	case st.ContentHash == content.Of(s.message):
		return committed, true
	case s.chat.Status.Archived:
		return conditions.HoldEdit(s.chat.Name), true
	}
	return committed, false
}

// describeTurn says how the turn stands that the message began.
func describeTurn(st *v1beta1.ChatMessageStatus, s *scope) conditions.Summary {
	told := saysHow(st, s)
	conditions.Commit(st, string(s.chat.UID), s.commit)
	// The message alone still knows how the turn ended, or why it failed, if it has said so of this turn.
	unknown := s.outcome == nil || s.outcome.Result == "" ||
		s.outcome.Result == v1beta1.TurnFailed && s.outcome.Reason == ""
	if s.outcome != nil {
		st.ResumedVersion = s.outcome.ResumedVersion
	}
	switch {
	case told && unknown:
		return asBefore(st)
	case s.outcome.Result == "":
		return underWay(&s.chat.Status)
	}
	return conditions.OfTurn(s.outcome)
}

// describePending says what keeps the chat from taking the message up. It returns false if nothing does.
func describePending(st *v1beta1.ChatMessageStatus, s *scope) (conditions.Summary, bool) {
	chat, hold, stuck := &s.chat.Status, metav1.NewTime(plan.HoldOf(s.message)), obstacle(&s.chat.Status)
	switch {
	case chat.Archived:
		st.State = v1beta1.MessagePending
		return conditions.Working(v1beta1.ReasonChatArchived,
			"Chat "+s.chat.Name+" is archived: the message is answered once spec.archived is false there"), true
	case s.archiving:
		st.State = v1beta1.MessagePending
		return conditions.Working(v1beta1.ReasonChatArchived,
			"Chat "+s.chat.Name+" is about to be archived: the message is answered once spec.archived is false there"), true
	case stuck != nil:
		st.State = v1beta1.MessagePending
		return conditions.Working(v1beta1.ReasonWaitingForChat,
			"Chat "+s.chat.Name+" cannot begin: "+stuck.Message), true
	case !hold.IsZero() && chat.Wait != nil && chat.Wait.For == v1beta1.WaitForEdit:
		st.State = v1beta1.MessagePending
		return conditions.HeldForEdit(&hold), true
	}
	return conditions.Summary{}, false
}

// underWay says how the chat's turn stands. Why the chat gets no generation pod, its message says too.
func underWay(chat *v1beta1.ChatStatus) conditions.Summary {
	ready := meta.FindStatusCondition(chat.Conditions, v1beta1.ConditionReady)
	if v1beta1.ReasonOf(ready) == v1beta1.ReasonGenerationPodRejected {
		return conditions.Working(v1beta1.ReasonOf(ready), ready.Message)
	}
	return conditions.OfTurn(&v1beta1.TurnOutcome{})
}

// saysHow reports whether the message says already how the turn ended.
func saysHow(st *v1beta1.ChatMessageStatus, s *scope) bool {
	ready := asBefore(st)
	return max(st.HistoryVersion, st.ResumedVersion) == s.version() && ready.Ready != metav1.ConditionUnknown
}

// describeResults says where a message with a client's results stands. The chat itself refuses one.
func describeResults(st *v1beta1.ChatMessageStatus, s *scope) (conditions.Summary, bool) {
	chat := &s.chat.Status
	switch {
	case s.commit != nil:
		conditions.Commit(st, string(s.chat.UID), s.commit)
		return conditions.Done(v1beta1.ReasonResultsAccepted, "The results answer the calls that waited"), true
	case st.State == v1beta1.MessageCommitted || chat.Phase != v1beta1.ChatRequiresAction:
		return conditions.Summary{}, false
	}
	st.State = v1beta1.MessagePending
	return conditions.Working(v1beta1.ReasonWaitingForApproval,
		"Waits until the other calls have been approved or denied"), anyUndecided(chat.RequiresAction)
}

func anyUndecided(required *v1beta1.RequiresActionStatus) bool {
	return required != nil && slices.ContainsFunc(required.ToolCalls, func(c v1beta1.PendingToolCall) bool {
		return c.Kind == v1beta1.RequiresApproval && c.Decision == nil
	})
}

// asBefore is what the status says already, for a message that was changed in another way than its content.
func asBefore(st *v1beta1.ChatMessageStatus) conditions.Summary {
	ready := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady)
	if ready == nil {
		return conditions.Working(v1beta1.ReasonAnswering, "")
	}
	return conditions.Summary{Ready: ready.Status, Reason: v1beta1.ReasonOf(ready), Message: ready.Message}
}

// cannotBegin are the reasons for which a chat takes no message up.
var cannotBegin = []v1beta1.ErrorReason{v1beta1.ErrorModelConfigNotFound, v1beta1.ErrorModelConfigDisabled,
	v1beta1.ErrorModelConfigNotAllowed, v1beta1.ErrorChatClassNotFound,
	v1beta1.ErrorParentNotFound, v1beta1.ErrorSubChatLimitExceeded}

// obstacle is the condition that says why the chat takes no message up, or why spec.prompt cannot become its first
// message, behind which every other one waits; nil: nothing is in the way.
func obstacle(chat *v1beta1.ChatStatus) *metav1.Condition {
	stalled := meta.FindStatusCondition(chat.Conditions, v1beta1.ConditionStalled)
	if stalled != nil && slices.Contains(cannotBegin, v1beta1.ErrorReason(stalled.Reason)) {
		return stalled
	}
	ready := meta.FindStatusCondition(chat.Conditions, v1beta1.ConditionReady)
	switch v1beta1.ReasonOf(ready) {
	case v1beta1.ReasonPromptRejected, v1beta1.ReasonPromptNameConflict:
		return ready
	}
	return nil
}
