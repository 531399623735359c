// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference is the conversation API, written down as plainly as possible: one chat in memory, at most one
// sub-chat of it and a few other chats of its namespace, one small function for each thing that a person does to them,
// and one for each way in which a generation pod answers. There is no API server, no fence, no retry and no crash in
// it. Whoever wants to know what Parley does with a chat can read it here, and the randomised test in the folder above
// holds the operator to it.
//
// It is a second opinion: it is written from what the documentation promises, imports nothing of the operator but the
// words of its API, and keeps less. Above all it keeps no counters: which calls are outstanding, how many steps a turn
// has and whether something is left to answer are read off the history each time.
//
// The invariants that it keeps: Waiting has no queue; only Running and Interrupting chats have an attempt, and an
// Interrupting one always does; the history begins with a User message; calls are asked for only in RequiresAction; an
// archived chat is Waiting or in Error.
package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Chat is one conversation.
type Chat struct {
	// Limits of the chat, which can change at any time.
	Limits Limits
	// Suspended holds work: no attempt begins.
	Suspended bool
	// ToArchive is true when somebody wants the chat put away, Archived once it is.
	ToArchive, Archived bool
	// asPutAway is the queue as it was then.
	asPutAway []string
	// comingBack is true while a chat that was archived is taken back: no attempt begins.
	comingBack bool
	// Name of a sub-chat or peer, Sub the sub-chat of a chat, above the chat above a sub-chat.
	Name  string
	Sub   *Chat
	above *Chat
	// Peers are the other chats without a parent that the first chat of a namespace knows.
	Peers     []*Chat
	namespace *namespace
	// Phase is where the chat stands. A new chat is Waiting.
	Phase v1beta1.ChatPhase
	// History is the chain of committed messages, oldest first.
	History []*Message
	// ContextStart is the index of the first message that the model sees.
	ContextStart int
	// boundaries are where contexts began, oldest first, replies what is known of those in the newest one.
	boundaries []boundary
	replies    known
	// compacting is true from the moment when a compaction is asked for until it is made,
	// the chat is interrupted or the history changes.
	compacting bool
	// failed is the number of the attempt that failed, losses how many of the step were lost, while the next has to wait.
	failed, losses int
	// Queue holds the names of the messages that wait for the turn to end, next first.
	Queue []string
	// Attempt is what a generation pod is at; nil if none has work for this chat.
	Attempt *Attempt
	// Asked are the calls that wait for a client or for approval, while the phase is RequiresAction.
	Asked []Call
	// Error is why the last turn failed; empty once a new one has begun.
	Error v1beta1.ErrorReason
	// spent counts the replies and summaries that were paid for, those of deleted sub-chats included: an edit pays nothing
	// back.
	spent int
	// Begun is true once the chat has taken its first message.
	Begun bool
	// Requests are the newest token of each kind of request, and what became of it.
	Requests map[v1beta1.RequestKind]Request

	// refers is what the chat says while what it names is missing, missing the same while it is; empty: nothing.
	refers, missing v1beta1.ErrorReason

	people    []*Message
	approvals []approval
}

// Limits of a chat.
type Limits struct {
	// MaxQueue is how many messages may wait, MaxSteps how many replies a turn may have.
	MaxQueue, MaxSteps int
	// Budget is how many replies and summaries the chat and its sub-chat may pay for; 0: any number.
	Budget int
	// Impatient is true when calls are cancelled at once instead of waiting for people: the deadline is short.
	Impatient bool
	// StopsAfterClient is true when a client's result ends the turn, unless it is an error.
	StopsAfterClient bool
}

// Message is one message, of a person or of a generation pod.
type Message struct {
	Name string
	Role v1beta1.MessageRole
	// Calls of a reply.
	Calls []Call
	// Answers are the ids of the calls to which a Tool message brings the results.
	Answers []string
	// Stops is true for results of which one ends the turn.
	Stops bool
	// Partial is true for what an interrupted attempt had so far.
	Partial bool

	// State of a person's message: a generated one has none.
	State v1beta1.MessageState
	// Refusal is why a Rejected or Superseded message is not part of the conversation.
	Refusal v1beta1.ConditionReason
	// CutsIn is true for a User message with whenBusy: Interrupt.
	CutsIn bool
	// Held is true for a queued message while someone edits it.
	Held bool
	// Turn that a committed User message began.
	Turn Turn
	// Edited and gone are true for a committed message that was edited or deleted while the chat was archived.
	Edited, gone bool
}

// Turn is what followed from a User message, beyond what the history shows.
type Turn struct {
	// Result is how it ended; empty while it is under way.
	Result v1beta1.TurnResult
	// Failure is why it failed, if it did.
	Failure v1beta1.ErrorReason
	// CallsCanceled is true when the outstanding calls were given up: the model is told so, and goes on.
	CallsCanceled bool
	// Decided are the ids of the calls that people have approved or denied: Parley runs or answers them next.
	Decided []string
}

// Call is a tool call that the model asks for.
type Call struct {
	ID string
	// WaitsFor names the sub-chat until whose end the call waits; empty for one that does not.
	WaitsFor string
	// RequiresAction is what it waits for besides Parley; empty for a call that Parley runs at once.
	RequiresAction v1beta1.RequiredAction
	// Decision about a call that is asked for; empty until somebody has made it.
	Decision v1beta1.ApprovalDecision
}

// Attempt is one try at one step.
type Attempt struct {
	// Number counts the tries of this step, from 1.
	Number int
	// Action that the generation pod performs.
	Action v1beta1.GenerationAction
	// losses counts the attempts at this step that were lost before.
	losses int
}

// Request is what an annotation asked for.
type Request struct {
	Token   string
	Outcome v1beta1.RequestOutcome
}

// New is a chat that nobody has said anything in.
func New(limits Limits) *Chat {
	c := &Chat{Limits: limits, Phase: v1beta1.ChatWaiting, Requests: map[v1beta1.RequestKind]Request{},
		namespace: &namespace{quotas: map[string]Counts{}}}
	c.enter(c)
	return c
}

// Person finds a message that a person wrote and nobody has deleted; nil if there is none.
func (c *Chat) Person(name string) *Message { return find(c.people, name) }

// People are the messages that people wrote and nobody has deleted, oldest first.
func (c *Chat) People() []*Message { return slices.Clone(c.people) }

// Committed finds a message of the history that nobody has deleted; nil if there is none.
func (c *Chat) Committed(name string) *Message {
	if m := find(c.History, name); m != nil && !m.gone {
		return m
	}
	return nil
}

func find(messages []*Message, name string) *Message {
	for _, m := range messages {
		if m.Name == name {
			return m
		}
	}
	return nil
}

func place(messages []*Message, m *Message) int { return slices.Index(messages, m) }

// user is the User message that began the turn that is under way, or else the last one; nil before the first.
func (c *Chat) user() *Message {
	for _, m := range slices.Backward(c.History) {
		if m.Role == v1beta1.RoleUser {
			return m
		}
	}
	return nil
}

// sinceUser is what the turn has committed so far, without the User message that began it.
func (c *Chat) sinceUser() []*Message {
	return c.History[place(c.History, c.user())+1:]
}

func (c *Chat) busy() bool {
	return c.Phase != v1beta1.ChatWaiting && c.Phase != v1beta1.ChatError
}
