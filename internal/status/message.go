// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// Commit records in a User message's status the place in the history that the turn record gives it.
func Commit(st *v1alpha1.ChatMessageStatus, chatUID string, turn *v1alpha1.TurnStatus) {
	st.State = v1alpha1.MessageCommitted
	st.ChatUID = chatUID
	st.Parent = turn.Parent
	st.Index = new(turn.Index)
	st.HistoryVersion = turn.HistoryVersion
}

// Message writes the summary into a User message's conditions and marks the generation as observed.
func Message(st *v1alpha1.ChatMessageStatus, s Summary, generation int64, now time.Time) {
	s.apply(&st.Conditions, generation, now)
	st.ObservedGeneration = generation
}

// MessageSettled tells whether a User message's status has said its last word: answered, failed or rejected.
func MessageSettled(st *v1alpha1.ChatMessageStatus) bool {
	ready := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionUnknown
}

// OfTurn says how the turn stands, for the User message that began it.
func OfTurn(turn *v1alpha1.TurnStatus, lastError *v1alpha1.LastError) Summary {
	switch turn.Result {
	case v1alpha1.TurnAnswered:
		return Done(v1alpha1.ReasonAnswered, "The turn ended with a reply")
	case v1alpha1.TurnMaxStepsReached:
		return Done(v1alpha1.ReasonMaxStepsReached, "The turn was ended by the chat's limits.maxSteps")
	case v1alpha1.TurnFailed:
		if lastError == nil {
			return Failed(v1alpha1.ReasonTurnFailed, "The turn failed")
		}
		return Failed(string(lastError.Reason), lastError.Message)
	}
	return Working(v1alpha1.ReasonBeingAnswered, "The chat is working on the answer")
}
