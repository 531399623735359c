// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Send creates a User message: whenBusy: Interrupt if it cuts in, else Queue.
func (c *Chat) Send(name string, cutsIn bool) {
	m := &Message{Name: name, Role: v1beta1.RoleUser, CutsIn: cutsIn}
	c.people = append(c.people, m)
	c.take(m)
}

// take takes a User message up. An idle chat begins a turn with it; after a failure the message that has waited longest
// goes first; a busy chat lets it wait, or stops for it; one that is or will be archived takes none up.
func (c *Chat) take(m *Message) {
	switch {
	case c.toArchive(), !c.busy() && c.blockedBy() != "":
		m.State, m.Refusal = v1beta1.MessagePending, ""
	case c.full(m):
		m.reject(v1beta1.ReasonQueueFull)
	case c.Phase == v1beta1.ChatError && len(c.Queue) > 0:
		c.enqueue(len(c.Queue), m)
		c.begin(c.takeFromQueue(nextQueued(c)))
	case !c.busy():
		c.begin(m)
	case m.CutsIn:
		c.cutIn(m)
		c.stop()
	default:
		c.enqueue(len(c.Queue), m)
	}
}

// full reports whether there is no room for the message in the queue. After a failure the first one leaves it at once.
func (c *Chat) full(m *Message) bool {
	switch {
	case !c.busy() && (c.Phase != v1beta1.ChatError || len(c.Queue) == 0):
		return false // It does not wait.
	case m.CutsIn:
		return len(c.Queue) >= c.Limits.MaxQueue+v1beta1.RoomToCutIn
	case c.Phase == v1beta1.ChatError:
		return len(c.Queue) > c.Limits.MaxQueue
	}
	return len(c.Queue) >= c.Limits.MaxQueue
}

// cutIn lets the message wait behind all that cut in before it, and all of these before the others.
func (c *Chat) cutIn(m *Message) {
	var cutIns, others []string
	for _, name := range c.Queue {
		if c.Person(name).CutsIn {
			cutIns = append(cutIns, name)
		} else {
			others = append(others, name)
		}
	}
	c.Queue = slices.Concat(cutIns, others)
	c.enqueue(len(cutIns), m)
}

func (c *Chat) enqueue(at int, m *Message) {
	m.State, m.Refusal = v1beta1.MessageQueued, ""
	c.Queue = slices.Insert(c.Queue, at, m.Name)
}

func (m *Message) reject(reason v1beta1.ConditionReason) {
	m.State, m.Refusal = v1beta1.MessageRejected, reason
}

func (m *Message) supersede() {
	m.Held = false
	m.State, m.Refusal = v1beta1.MessageSuperseded, v1beta1.ReasonSuperseded
}

// Edit changes what a User message says. One that waits will say something else when its turn comes; one that is not
// part of the conversation asks again; from one that was committed the conversation begins again.
func (c *Chat) Edit(name string) {
	switch m := c.Person(name); m.State {
	case v1beta1.MessageCommitted:
		if c.Archived {
			m.Edited = true
			return
		}
		c.beginAgain(m)
	case v1beta1.MessageRejected, v1beta1.MessageSuperseded:
		c.take(m)
	}
}

func (c *Chat) beginAgain(m *Message) {
	for _, queued := range c.Queue { // They continued a conversation that no longer exists.
		c.Person(queued).supersede()
	}
	c.Queue = nil
	c.cut(place(c.History, m))
	c.replies = unknown
	c.begin(m)
}

// CutIn changes a User message to whenBusy: Interrupt. One that waits is next then, and what is under way is stopped;
// one that was committed stays where it is.
func (c *Chat) CutIn(name string) {
	m := c.Person(name)
	m.CutsIn = true
	switch {
	case m.State == v1beta1.MessageRejected, m.State == v1beta1.MessageSuperseded:
		c.take(m)
	case m.State != v1beta1.MessageQueued || c.Archived:
	case c.Phase == v1beta1.ChatRunning, c.Phase == v1beta1.ChatInterrupting:
		c.takeFromQueue(name)
		c.cutIn(m)
		c.stop()
	default: // Nothing is under way, so it begins at once, or one that cut in before it.
		c.takeFromQueue(name)
		c.cutIn(m)
		c.begin(c.takeFromQueue(nextQueued(c)))
	}
}

// Delete deletes a message, of a person or of a generation pod. If it was committed, all that followed leaves the
// history with it, and the chat goes on from what is left: again, if that has no answer.
func (c *Chat) Delete(name string) {
	c.people = slices.DeleteFunc(c.people, func(m *Message) bool { return m.Name == name })
	c.Queue = slices.DeleteFunc(c.Queue, func(q string) bool { return q == name })
	m := c.Committed(name)
	switch {
	case m == nil:
	case c.Archived:
		m.gone = true
	default:
		c.goOnWithout(m)
	}
}

func (c *Chat) goOnWithout(m *Message) {
	c.cut(place(c.History, m))
	c.countReplies()
	if !c.answerIsDue() {
		c.rest()
		return
	}
	c.Error, c.user().Turn = "", Turn{}
	c.goOn()
}

// answerIsDue reports whether the history ends with something that the model must answer, or with calls that have no
// result. What was interrupted is left as it is.
func (c *Chat) answerIsDue() bool {
	if len(c.History) == 0 {
		return false
	}
	last := c.last()
	return last != nil && !last.Partial && (last.Role != v1beta1.RoleAssistant || len(last.Calls) > 0)
}

// cut takes the messages from an index on out of the history. Generated ones are removed; people's own say that they
// are no longer part of the conversation.
func (c *Chat) cut(from int) {
	for _, m := range c.History[from:] {
		m.supersede()
	}
	c.History = c.History[:from]
	c.compacting = false
	c.backToContext()
}
