// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine is the state machine of a chat: its states, the events that move it, and one table that says which
// event is possible in which state, what it leads to and what must be done along with it.
//
// The invariant it keeps: a pair of state and event that is not in the table is refused. The package is pure. It has no
// clock, no client and no logger; a caller gathers Facts, asks Next, and carries out the effects of the answer in one
// compare-and-swap of the Chat's status.
package machine

import "parley.dev/parley/api/v1beta1"

// State is where a chat stands: its phase, and whether it is archived.
type State string

// The states.
const (
	None            State = "None"
	Waiting         State = "Waiting"
	Error           State = "Error"
	Running         State = "Running"
	Interrupting    State = "Interrupting"
	RequiresAction  State = "RequiresAction"
	ArchivedWaiting State = "ArchivedWaiting"
	ArchivedError   State = "ArchivedError"
	Invalid         State = "Invalid"
)

type stateSpec struct {
	state    State
	phase    v1beta1.ChatPhase
	archived bool
	// queues is true where messages may be queued.
	queues  bool
	meaning string
}

var stateSpecs = []stateSpec{
	{None, "", false, false, "The Chat exists, but it has no message yet."},
	{Waiting, v1beta1.ChatWaiting, false, false, "Nothing is left to do until a message comes."},
	{Error, v1beta1.ChatError, false, true,
		"The last turn failed; nothing happens until a person acts, and queued messages wait for that, too."},
	{Running, v1beta1.ChatRunning, false, true, "A turn is under way; queued messages wait for its end."},
	{Interrupting, v1beta1.ChatInterrupting, false, true,
		"The turn was interrupted; its partial reply is being finished, and then the queue continues."},
	{RequiresAction, v1beta1.ChatRequiresAction, false, true,
		"The turn waits for a person or a client to answer its tool calls; " +
			"queued messages wait for its end."},
	{ArchivedWaiting, v1beta1.ChatWaiting, true, false, "Archived with nothing left to do."},
	{ArchivedError, v1beta1.ChatError, true, true, "Archived after a failed turn."},
	{Invalid, "", false, true, "A combination that must not exist: Waiting with a queued message that is not held, " +
		"a busy chat that is archived, an unknown phase. It is turned into Error, where a person can decide what to do."},
}

// States lists every state once, None first and Invalid last.
func States() []State {
	out := make([]State, 0, len(stateSpecs))
	for _, s := range stateSpecs {
		out = append(out, s.state)
	}
	return out
}

// StateOf is the state of a chat that has begun, with this phase, this many queued messages, and archived or not.
func StateOf(phase v1beta1.ChatPhase, queueLen int, archived bool) State {
	for _, s := range stateSpecs {
		if s.state != None && s.phase == phase && s.archived == archived && (s.queues || queueLen == 0) &&
			s.state != Invalid {
			return s.state
		}
	}
	return Invalid
}

// Phase of a chat in the state, as Chat.status.phase says it; empty for None and Invalid.
func (s State) Phase() v1beta1.ChatPhase { return s.spec().phase }

// Archived reports whether a chat in the state is archived.
func (s State) Archived() bool { return s.spec().archived }

// Queues reports whether a chat in the state may have queued messages.
func (s State) Queues() bool { return s.spec().queues }

// Meaning says in one sentence what the state is.
func (s State) Meaning() string { return s.spec().meaning }

func (s State) spec() stateSpec {
	for _, spec := range stateSpecs {
		if spec.state == s {
			return spec
		}
	}
	return stateSpec{}
}
