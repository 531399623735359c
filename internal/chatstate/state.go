// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatstate is the state machine of a chat: its states, the events that move it, and one table that says which
// event is possible in which state, what it leads to and what must be done along with it.
//
// The invariant it keeps: a pair of state and event that is not in the table is refused. The package is pure. It has no
// clock, no client and no logger; a caller gathers Facts, asks Next, and carries out the effects of the answer in one
// compare-and-swap of the Chat's status.
package chatstate

import "fmt"

// Phase is the phase of a chat, in the words of Chat.status.phase. It is empty as long as the chat has no message.
type Phase string

// The phases. Anything else makes a State invalid.
const (
	PhaseNone           Phase = ""
	PhaseWaiting        Phase = "Waiting"
	PhaseRunning        Phase = "Running"
	PhaseInterrupting   Phase = "Interrupting"
	PhaseRequiresAction Phase = "RequiresAction"
	PhaseError          Phase = "Error"
)

// State is where a chat stands: its phase, whether messages wait in its queue, and whether it is archived. The zero
// value is None. Not every combination is a state; the others are equal in meaning to Invalid.
type State struct {
	// Phase of the chat.
	Phase Phase
	// QueueNonEmpty is true when at least one message waits in the queue.
	QueueNonEmpty bool
	// Archived is true when the chat was archived.
	Archived bool
}

// The states. A name's digit says whether messages wait in the queue (1) or not (0); X stands for archived.
var (
	// None is a chat without any message.
	None = State{}
	// W waits for a message.
	W = State{Phase: PhaseWaiting}
	// E0 failed.
	E0 = State{Phase: PhaseError}
	// E1 failed, and messages are queued.
	E1 = State{Phase: PhaseError, QueueNonEmpty: true}
	// R0 works on a turn.
	R0 = State{Phase: PhaseRunning}
	// R1 works on a turn, and messages are queued.
	R1 = State{Phase: PhaseRunning, QueueNonEmpty: true}
	// I0 was interrupted and keeps what was said so far.
	I0 = State{Phase: PhaseInterrupting}
	// I1 is I0 with messages queued.
	I1 = State{Phase: PhaseInterrupting, QueueNonEmpty: true}
	// A0 needs a person or a client to act.
	A0 = State{Phase: PhaseRequiresAction}
	// A1 is A0 with messages queued.
	A1 = State{Phase: PhaseRequiresAction, QueueNonEmpty: true}
	// XW is W, archived.
	XW = State{Phase: PhaseWaiting, Archived: true}
	// XE0 is E0, archived.
	XE0 = State{Phase: PhaseError, Archived: true}
	// XE1 is E1, archived.
	XE1 = State{Phase: PhaseError, QueueNonEmpty: true, Archived: true}
	// Invalid stands for every combination that is none of the above, such as Waiting with a queue.
	Invalid = State{Phase: "Invalid"}
)

type stateSpec struct {
	state   State
	name    string
	meaning string
}

var stateSpecs = []stateSpec{
	{None, "None", "The Chat exists, but it has no message yet."},
	{W, "W", "Nothing is left to do until a message comes."},
	{E0, "E0", "The last turn failed; nothing happens until a person acts."},
	{E1, "E1", "The last turn failed while messages were queued; they wait until a person acts."},
	{R0, "R0", "A turn is under way."},
	{R1, "R1", "A turn is under way, and messages wait for its end."},
	{I0, "I0", "The turn was interrupted; its partial reply is being finished."},
	{I1, "I1", "The turn was interrupted, and the queue goes on once its partial reply is finished."},
	{A0, "A0", "The turn waits for a person or a client to answer its tool calls."},
	{A1, "A1", "The turn waits for a person or a client, and messages wait for its end."},
	{XW, "XW", "Archived with nothing left to do."},
	{XE0, "XE0", "Archived after a failed turn."},
	{XE1, "XE1", "Archived after a failed turn, with messages queued."},
	{Invalid, "Invalid", "A combination that must not exist: Waiting with a queue, a busy chat that is archived, " +
		"an unknown phase. It is turned into Error, where a person can go on."},
}

var specOfState = func() map[State]stateSpec {
	m := make(map[State]stateSpec, len(stateSpecs))
	for _, s := range stateSpecs {
		m[s.state] = s
	}
	return m
}()

// States lists every state once, None first and Invalid last.
func States() []State {
	out := make([]State, 0, len(stateSpecs))
	for _, s := range stateSpecs {
		out = append(out, s.state)
	}
	return out
}

// StateOf is the state of a chat with this phase, this many queued messages, and archived or not.
func StateOf(phase Phase, queueLen int, archived bool) State {
	return State{Phase: phase, QueueNonEmpty: queueLen > 0, Archived: archived}
}

// ParseState is the inverse of String. Of the invalid combinations it knows only Invalid itself.
func ParseState(name string) (State, error) {
	for _, s := range stateSpecs {
		if s.name == name {
			return s.state, nil
		}
	}
	return Invalid, fmt.Errorf("parsing state: %q is not the name of a state", name)
}

// Valid says whether s is one of the declared states other than Invalid.
func (s State) Valid() bool { return s.canonical() != Invalid }

// String is the short name of the state: None, W, E0 and so on. Every combination that is not a state is "Invalid".
func (s State) String() string { return specOfState[s.canonical()].name }

// Meaning says in one sentence what the state is.
func (s State) Meaning() string { return specOfState[s.canonical()].meaning }

func (s State) canonical() State {
	if _, ok := specOfState[s]; ok {
		return s
	}
	return Invalid
}
