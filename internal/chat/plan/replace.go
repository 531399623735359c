// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1beta1"
)

// TurnRecord is all that a chat's status says of a turn: what is for people, and the operator's own memory.
type TurnRecord struct {
	*v1beta1.TurnStatus
	Internal v1beta1.TurnInternalStatus
}

// recordOf is the record of the chat's turn; its TurnStatus is nil if there is none.
func recordOf(st *v1beta1.ChatStatus) TurnRecord { return TurnRecord{st.Turn, st.Internal.Turn} }

// setTurn puts a turn in the place of the one before, of which nothing is left. No other function replaces either part.
func setTurn(st *v1beta1.ChatStatus, t TurnRecord) {
	st.Turn, st.Internal.Turn = t.TurnStatus, t.Internal
}

// attemptRecord is all that a chat's status says of the attempts at a step: one is under way, or the next one is
// planned; in the zero record neither.
type attemptRecord struct {
	underWay *v1beta1.GenerationStatus
	next     *v1beta1.RetryStatus
	internal v1beta1.AttemptInternalStatus
}

// attemptsOf is the record of the chat's step.
func attemptsOf(st *v1beta1.ChatStatus) attemptRecord {
	return attemptRecord{st.Generation, st.Retry, st.Internal.Attempt}
}

// setAttempt puts a record in the place of the one before, of which nothing is left. No other function replaces any
// part.
func setAttempt(st *v1beta1.ChatStatus, a attemptRecord) {
	st.Generation, st.Retry, st.Internal.Attempt = a.underWay, a.next, a.internal
}
