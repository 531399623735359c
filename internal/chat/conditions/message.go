// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// Commit records in a User message's status the place in the history that the turn record gives it.
func Commit(st *v1alpha1.ChatMessageStatus, chatUID string, turn *v1alpha1.TurnStatus,
	in *v1alpha1.TurnInternalStatus) {
	st.State = v1alpha1.MessageCommitted
	st.ChatUID = chatUID
	st.Parent = turn.Parent
	st.Index = new(turn.Index)
	st.HistoryVersion, st.ResumedVersion = turn.HistoryVersion, in.ResumedVersion
	st.ContentHash, st.CallsGivenUpBefore = in.ContentHash, in.CallsGivenUpBefore
	st.CreatedVersion = ""
}

// PreviousTurn is the record of the turn before, in the two parts that one of a turn has; nil without one.
func PreviousTurn(p *v1alpha1.PreviousTurnStatus) (*v1alpha1.TurnStatus, *v1alpha1.TurnInternalStatus) {
	if p == nil {
		return nil, nil
	}
	return &v1alpha1.TurnStatus{Message: p.Message, Parent: p.Parent, Index: p.Index, HistoryVersion: p.HistoryVersion,
			Result: p.Result, StoppedBy: p.StoppedBy},
		&v1alpha1.TurnInternalStatus{ResumedVersion: p.ResumedVersion, ContentHash: p.ContentHash,
			CallsGivenUpBefore: p.CallsGivenUpBefore}
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
	m.Status.State, m.Status.BeforeEdit = v1alpha1.MessageSuperseded, nil
	Message(&m.Status, Failed(v1alpha1.ReasonSuperseded,
		"A message before this one was edited or deleted, and the conversation continues without it: delete it, or "+
			"recreate it to ask again"),
		m.Generation, now)
}

// HoldEdit says of a committed message that an edit of it has to wait, since the chat is archived. What is said of it
// as it was committed is kept: the edit may be undone.
func HoldEdit(st *v1alpha1.ChatMessageStatus, chat string, committed Summary) Summary {
	st.BeforeEdit = &v1alpha1.MessageOutcome{Status: committed.Ready, Reason: committed.Reason,
		Message: clip.Bytes(printable.Text(committed.Message), maxConditionMessage)}
	return Working(v1alpha1.ReasonChatArchived, "Chat "+chat+" is archived: the edit counts once spec.archived is "+
		"false there, and the conversation begins again from this message")
}

// Compare orders a turn record and the status of its message: negative when the record is of an earlier time than the
// status, as in an old view of the chat, and positive when the turn was committed or resumed since the status was
// written.
func Compare(turn *v1alpha1.TurnStatus, in *v1alpha1.TurnInternalStatus, st *v1alpha1.ChatMessageStatus) int {
	return cmp.Compare(max(turn.HistoryVersion, in.ResumedVersion), Version(st))
}

// Version of the history with which the turn began, or was taken up again, that the status of its message tells of.
func Version(st *v1alpha1.ChatMessageStatus) int64 { return max(st.HistoryVersion, st.ResumedVersion) }

// MessageSettled reports whether a User message's status is terminal for its current generation: answered, failed,
// rejected or superseded.
func MessageSettled(m *v1alpha1.ChatMessage) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionUnknown && m.Status.ObservedGeneration == m.Generation
}

// OfTurn says how the turn stands, for the User message that began it.
func OfTurn(turn *v1alpha1.TurnStatus, lastError *v1alpha1.LastError) Summary {
	switch turn.Result {
	case v1alpha1.TurnAnswered:
		return Done(v1alpha1.ReasonAnswered, "The turn ended with a reply")
	case v1alpha1.TurnCutByLength:
		return Done(v1alpha1.ReasonCutByLength, v1alpha1.ReplyCutByLength.Note())
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
		if lastError == nil {
			return Failed(v1alpha1.ReasonTurnFailed, "The turn failed")
		}
		return Failed(v1alpha1.ConditionReason(lastError.Reason), lastError.Text())
	}
	return Working(v1alpha1.ReasonBeingAnswered, "The chat is working on the answer")
}

// ResultOf is how a turn ends whose last reply ended so.
func ResultOf(reply v1alpha1.ReplyOutcome) v1alpha1.TurnResult {
	switch reply {
	case v1alpha1.ReplyCutByLength:
		return v1alpha1.TurnCutByLength
	case v1alpha1.ReplyRefused:
		return v1alpha1.TurnRefused
	}
	return v1alpha1.TurnAnswered
}

// CommitResults records in a Tool message's status where a client's results stand in the history.
func CommitResults(st *v1alpha1.ChatMessageStatus, chatUID string, place *v1alpha1.MessagePlace) Summary {
	st.State = v1alpha1.MessageCommitted
	st.ChatUID = chatUID
	st.Parent = place.Parent
	st.Index = new(place.Index)
	st.HistoryVersion = place.HistoryVersion
	st.StoppedBy = place.StoppedBy
	return Done(v1alpha1.ReasonResultsAccepted, "The results answer the calls that waited")
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
