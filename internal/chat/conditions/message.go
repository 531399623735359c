// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// Commit says in the status of a message of a person or a client where its commit put it in the history.
func Commit(st *v1alpha1.ChatMessageStatus, chatUID string, commit *v1alpha1.CommittedMessage) {
	st.State = v1alpha1.MessageCommitted
	st.ChatUID = chatUID
	st.Parent = commit.Parent
	st.Index = new(commit.Position)
	st.HistoryVersion = commit.HistoryVersion
	st.ContentHash, st.StoppedBy = commit.ContentHash, commit.StoppedBy
	st.CallsCanceledReasonBefore = commit.CallsCanceledReasonBefore
	st.CreatedVersion = ""
}

// OutcomeOf is how the turn ended; its Result is empty while it is under way. lastError is why it failed; nil where
// that is not known any longer.
func OutcomeOf(turn *v1alpha1.TurnStatus, in *v1alpha1.TurnInternalStatus, lastError *v1alpha1.LastError,
) *v1alpha1.TurnOutcome {
	outcome := &v1alpha1.TurnOutcome{Message: turn.Message, ResumedVersion: in.ResumedVersion, Result: turn.Result,
		StoppedBy: turn.StoppedBy}
	if turn.Result == v1alpha1.TurnFailed && lastError != nil {
		outcome.Reason, outcome.Error = lastError.Reason, lastError.Text()
	}
	return outcome
}

// Note records in the status of a message for people alone which messages of the chat it stands behind, once: it keeps
// its place whatever is said or cut later.
func Note(st *v1alpha1.ChatMessageStatus, chat *v1alpha1.Chat) Summary {
	if st.State != v1alpha1.MessageNoted {
		history := &chat.Status.History
		*st = v1alpha1.ChatMessageStatus{Conditions: st.Conditions, State: v1alpha1.MessageNoted, ChatUID: string(chat.UID),
			Index: new(history.Length), HistoryVersion: history.Version}
	}
	return Done(v1alpha1.ReasonNoted, "Note for people; not sent to models")
}

// Message writes the summary into a User message's conditions and marks the generation as observed.
func Message(st *v1alpha1.ChatMessageStatus, s Summary, generation int64, now time.Time) {
	s.apply(&st.Conditions, generation, now)
	st.ObservedGeneration = generation
}

// Supersede records in a User message's status that it is not, or no longer, part of the conversation.
func Supersede(m *v1alpha1.ChatMessage, now time.Time) {
	m.Status.State = v1alpha1.MessageSuperseded
	Message(&m.Status, Failed(v1alpha1.ReasonSuperseded,
		"A message before this one was edited or deleted, and the conversation continues without it: delete it, or "+
			"recreate it to ask again"),
		m.Generation, now)
}

// HoldEdit says of a committed message that an edit of it has to wait, since the chat is archived.
func HoldEdit(chat string) Summary {
	return Working(v1alpha1.ReasonChatArchived, "Chat "+chat+" is archived: the edit counts once spec.archived is "+
		"false there, and the conversation begins again from this message")
}

// MessageSettled reports whether a User message's status is terminal for its current generation: answered, failed,
// rejected or superseded.
func MessageSettled(m *v1alpha1.ChatMessage) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionUnknown && m.Status.ObservedGeneration == m.Generation
}

// OfTurn says how the turn stands, for the User message that began it.
func OfTurn(turn *v1alpha1.TurnOutcome) Summary {
	switch turn.Result {
	case v1alpha1.TurnAnswered:
		return Done(v1alpha1.ReasonAnswered, "The turn ended with a reply")
	case v1alpha1.TurnMaxTokensReached:
		return Done(v1alpha1.ReasonMaxTokensReached, v1alpha1.ReplyMaxTokensReached.Note())
	case v1alpha1.TurnRefused:
		return Done(v1alpha1.ReasonRefused, v1alpha1.ReplyRefused.Note()+"; the last reply is what it says to that")
	case v1alpha1.TurnStoppedAfterTool:
		return Done(v1alpha1.ReasonStoppedAfterTool, "The turn ended with the result of tool "+turn.StoppedBy+
			" (the chat's tools.stopAfter)")
	case v1alpha1.TurnMaxStepsReached:
		return Done(v1alpha1.ReasonMaxStepsReached, "The turn was ended by the chat's limits.maxSteps")
	case v1alpha1.TurnInterrupted:
		return Failed(v1alpha1.ReasonInterrupted, "The turn was interrupted; what was said until then is kept")
	case v1alpha1.TurnFailed:
		if turn.Reason == "" {
			return Failed(v1alpha1.ReasonTurnFailed, "The turn failed")
		}
		return Failed(v1alpha1.ConditionReason(turn.Reason), turn.Error)
	}
	return Working(v1alpha1.ReasonAnswering, "The chat is working on the answer")
}

// ResultOf is how a turn ends whose last reply ended so.
func ResultOf(reply v1alpha1.ReplyOutcome) v1alpha1.TurnResult {
	switch reply {
	case v1alpha1.ReplyMaxTokensReached:
		return v1alpha1.TurnMaxTokensReached
	case v1alpha1.ReplyRefused:
		return v1alpha1.TurnRefused
	}
	return v1alpha1.TurnAnswered
}

// Approval says in a ToolApproval's status what became of the decision.
func Approval(a *v1alpha1.ToolApproval, outcome v1alpha1.ConditionReason, now time.Time) {
	summary := Done(v1alpha1.ReasonApplied, "Decision applied")
	switch outcome {
	case v1alpha1.ReasonNotPending:
		summary = Failed(outcome, fmt.Sprintf(
			"Chat %s has no pending approval for tool call %s: see its status.requiresAction", a.Spec.ChatRef.Name,
			a.Spec.ToolCallID))
	case v1alpha1.ReasonDigestMismatch:
		summary = Failed(outcome, fmt.Sprintf("digest is not that of tool call %s of chat %s: read the call in "+
			"status.requiresAction of the chat, and create a ToolApproval with the digest that it has there",
			a.Spec.ToolCallID, a.Spec.ChatRef.Name))
	}
	summary.apply(&a.Status.Conditions, a.Generation, now)
	a.Status.ObservedGeneration = a.Generation
}
