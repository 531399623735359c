// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// Commit says in the status of a message of a person or a client where its commit put it in the history.
func Commit(st *v1beta1.ChatMessageStatus, chatUID string, commit *v1beta1.CommittedMessage) {
	st.State = v1beta1.MessageCommitted
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
func OutcomeOf(turn *v1beta1.TurnStatus, in *v1beta1.TurnInternalStatus, lastError *v1beta1.LastError,
) *v1beta1.TurnOutcome {
	outcome := &v1beta1.TurnOutcome{Message: turn.Message, ResumedVersion: in.ResumedVersion, Result: turn.Result,
		StoppedBy: turn.StoppedBy}
	if turn.Result == v1beta1.TurnFailed && lastError != nil {
		outcome.Reason, outcome.Error = lastError.Reason, lastError.Text()
	}
	return outcome
}

// Note records in the status of a message for people alone which messages of the chat it stands behind, once: it keeps
// its place whatever is said or cut later.
func Note(st *v1beta1.ChatMessageStatus, chat *v1beta1.Chat) Summary {
	if st.State != v1beta1.MessageNoted {
		history := &chat.Status.History
		*st = v1beta1.ChatMessageStatus{Conditions: st.Conditions, State: v1beta1.MessageNoted, ChatUID: string(chat.UID),
			Index: new(history.Length), HistoryVersion: history.Version}
	}
	return Done(v1beta1.ReasonNoted, "Note for people; not sent to models")
}

// Message writes the summary into a User message's conditions and marks the generation as observed.
func Message(st *v1beta1.ChatMessageStatus, s Summary, generation int64, now time.Time) {
	s.apply(&st.Conditions, generation, now)
	st.ObservedGeneration = generation
}

// Supersede records in a User message's status that it is not, or no longer, part of the conversation.
func Supersede(m *v1beta1.ChatMessage, now time.Time) {
	m.Status.State = v1beta1.MessageSuperseded
	Message(&m.Status, Failed(v1beta1.ReasonSuperseded,
		"A message before this one was edited or deleted, and the conversation continues without it: delete it, or "+
			"recreate it to ask again"),
		m.Generation, now)
}

// HoldEdit says of a committed message that an edit of it has to wait, since the chat is archived.
func HoldEdit(chat string) Summary {
	return Working(v1beta1.ReasonChatArchived, "Chat "+chat+" is archived: the edit counts once spec.archived is "+
		"false there, and the conversation begins again from this message")
}

// Queued says of a message in the queue what it waits for.
func Queued(queued *v1beta1.QueuedMessage) Summary {
	if queued.HeldUntil != nil {
		return HeldForEdit(queued.HeldUntil)
	}
	return Working(v1beta1.ReasonQueued, "Waits for the turn under way to end")
}

// HeldForEdit says that a message waits because someone edits it.
func HeldForEdit(until *metav1.Time) Summary {
	return Working(v1beta1.ReasonWaitingForEdit, "Waits until the edit of the message ends, at most until "+
		until.UTC().Format(time.RFC3339))
}

// MessageSettled reports whether a User message's status is terminal for its current generation: answered, failed,
// rejected or superseded.
func MessageSettled(m *v1beta1.ChatMessage) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionUnknown && m.Status.ObservedGeneration == m.Generation
}

// OfTurn says how the turn stands, for the User message that began it.
func OfTurn(turn *v1beta1.TurnOutcome) Summary {
	switch turn.Result {
	case v1beta1.TurnAnswered:
		return Done(v1beta1.ReasonAnswered, "The turn ended with a reply")
	case v1beta1.TurnMaxTokensReached:
		return Done(v1beta1.ReasonMaxTokensReached, v1beta1.ReplyMaxTokensReached.Note())
	case v1beta1.TurnRefused:
		return Done(v1beta1.ReasonRefused, v1beta1.ReplyRefused.Note()+"; the last reply is what it says to that")
	case v1beta1.TurnStoppedAfterTool:
		return Done(v1beta1.ReasonStoppedAfterTool, "The turn ended with the result of tool "+turn.StoppedBy+
			" (the chat's tools.stopAfter)")
	case v1beta1.TurnMaxStepsReached:
		return Done(v1beta1.ReasonMaxStepsReached, "The turn was ended by the chat's limits.maxSteps")
	case v1beta1.TurnInterrupted:
		return Failed(v1beta1.ReasonInterrupted, "The turn was interrupted; what was said until then is kept")
	case v1beta1.TurnFailed:
		if turn.Reason == "" {
			return Failed(v1beta1.ReasonTurnFailed, "The turn failed")
		}
		return Failed(v1beta1.ConditionReason(turn.Reason), turn.Error)
	}
	return Working(v1beta1.ReasonAnswering, "The chat is working on the answer")
}

// ResultOf is how a turn ends whose last reply ended so.
func ResultOf(reply v1beta1.ReplyOutcome) v1beta1.TurnResult {
	switch reply {
	case v1beta1.ReplyMaxTokensReached:
		return v1beta1.TurnMaxTokensReached
	case v1beta1.ReplyRefused:
		return v1beta1.TurnRefused
	}
	return v1beta1.TurnAnswered
}

// Approval says in a ToolApproval's status what became of the decision.
func Approval(a *v1beta1.ToolApproval, outcome v1beta1.ConditionReason, now time.Time) {
	summary := Done(v1beta1.ReasonApplied, "Decision applied")
	switch outcome {
	case v1beta1.ReasonNotPending:
		summary = Failed(outcome, fmt.Sprintf(
			"Chat %s has no pending approval for tool call %s: see its status.requiresAction", a.Spec.ChatRef.Name,
			a.Spec.ToolCallID))
	case v1beta1.ReasonDigestMismatch:
		summary = Failed(outcome, fmt.Sprintf("digest is not that of tool call %s of chat %s: read the call in "+
			"status.requiresAction of the chat, and create a ToolApproval with the digest that it has there",
			a.Spec.ToolCallID, a.Spec.ChatRef.Name))
	}
	summary.apply(&a.Status.Conditions, a.Generation, now)
	a.Status.ObservedGeneration = a.Generation
}
