// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// begin commits a User message, and a turn begins.
func (c *Chat) begin(m *Message) {
	if u := c.user(); u != nil && u.Turn.Result == "" {
		u.Turn.Result = v1beta1.TurnInterrupted // Its calls were waiting when this message pushed past them.
	}
	m.State, m.Refusal, m.Turn = v1beta1.MessageCommitted, "", Turn{}
	c.History = append(c.History, m)
	c.Begun, c.Error = true, ""
	c.goOn()
}

// goOn takes the next step of the turn, or ends the turn. What Parley can do itself comes before what people must do,
// and both come before the model is asked again: no provider takes a history in which a call has no result.
func (c *Chat) goOn() {
	c.Phase, c.Attempt, c.failed, c.losses = v1beta1.ChatRunning, nil, 0, 0
	c.stopAsking()
	own, asked := c.outstanding()
	switch {
	case len(own) > 0:
		c.attempt(v1beta1.ActionExecuteTools)
	case len(asked) > 0:
		c.ask(asked)
	case c.compacting:
		c.attempt(v1beta1.ActionCompact)
	case c.user().Turn.Result != "": // It was only taken up for a compaction.
		c.end(c.user().Turn.Result)
	case slices.ContainsFunc(c.sinceUser(), func(m *Message) bool { return m.Stops }):
		c.end(v1beta1.TurnStoppedAfterTool)
	case c.replyIsLast() && !c.user().Turn.CallsCanceled:
		c.end(v1beta1.TurnAnswered)
	case c.Steps() >= c.Limits.MaxSteps:
		c.end(v1beta1.TurnMaxStepsReached)
	default:
		c.attempt(v1beta1.ActionGenerateAssistant)
	}
}

// attempt gives the next step to a generation pod. A chat that is held, or that no budget or quota lets, stays Running
// without.
func (c *Chat) attempt(action v1beta1.GenerationAction) {
	switch why := c.heldBy(); {
	case why != "" && c.toArchive():
		c.fail(why)
	case why == "" && !c.held() && !c.waits() && c.isLet():
		c.Attempt = &Attempt{Number: 1, Action: action}
	}
}

// ask waits for clients and for people.
func (c *Chat) ask(calls []Call) {
	c.Phase, c.Asked, c.compacting = v1beta1.ChatRequiresAction, calls, false
	if c.Limits.Impatient {
		c.HandOut() // Meanwhile it leaves its place to others.
		c.cancelCalls()
		c.goOn()
	}
}

// cancelCalls gives the outstanding calls of the turn up.
func (c *Chat) cancelCalls() {
	c.user().Turn.CallsCanceled, c.user().Turn.Decided = true, nil
}

// end ends the turn. The next message begins in the same moment.
func (c *Chat) end(result v1beta1.TurnResult) {
	if turn := &c.user().Turn; turn.Result == "" { // It may have ended before a compaction.
		turn.Result = result
	}
	c.rest()
}

// rest leaves the chat to the next message of the queue, if there is one.
func (c *Chat) rest() {
	c.Phase, c.Attempt, c.Error, c.compacting = v1beta1.ChatWaiting, nil, "", false
	c.stopAsking()
	if next := nextQueued(c); next != "" {
		c.begin(c.takeFromQueue(next))
	}
	c.putAway()
}

func (c *Chat) takeFromQueue(name string) *Message {
	c.Queue = slices.DeleteFunc(c.Queue, func(q string) bool { return q == name })
	return c.Person(name)
}

// outstanding are the calls of the turn's newest reply that have no result: those that Parley must run or answer
// itself, and those that it must ask people for.
func (c *Chat) outstanding() (own, asked []Call) {
	turn := c.user().Turn
	if turn.CallsCanceled {
		return nil, nil
	}
	for _, call := range Unanswered(c.sinceUser()) {
		if call.RequiresAction == "" || slices.Contains(turn.Decided, call.ID) {
			own = append(own, call)
		} else {
			asked = append(asked, call)
		}
	}
	return own, asked
}

// Unanswered are the calls of the newest reply of the newest turn among the messages that no later message answers.
func Unanswered(messages []*Message) (calls []Call) {
	for _, m := range messages {
		switch m.Role {
		case v1beta1.RoleUser:
			calls = nil
		case v1beta1.RoleAssistant:
			calls = slices.Clone(m.Calls)
		case v1beta1.RoleTool:
			calls = slices.DeleteFunc(calls, func(call Call) bool { return slices.Contains(m.Answers, call.ID) })
		}
	}
	return calls
}

func (c *Chat) replyIsLast() bool {
	return c.last().Role == v1beta1.RoleAssistant
}

// Steps is how many replies the turn has.
func (c *Chat) Steps() (n int) {
	for _, m := range c.sinceUser() {
		if m.Role == v1beta1.RoleAssistant {
			n++
		}
	}
	return n
}
