// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// boundary is where a context begins: start is the index of its first message,
// length that of the history when it was begun.
type boundary struct{ start, length int }

// known is what the chat knows about replies in its context: after an edit nothing, until the next reply.
type known int

const (
	unknown known = iota
	noReplies
	someReplies
)

// Compact is the annotation parley.dev/compact: a summary takes the place of what was said.
func (c *Chat) Compact(token string) {
	if c.Requests[v1beta1.RequestCompact].Token == token {
		return
	}
	if c.Archived || c.busy() || !c.compactable() {
		c.Requests[v1beta1.RequestCompact] = Request{token, v1beta1.RequestRefused}
		return
	}
	c.Requests[v1beta1.RequestCompact] = Request{token, v1beta1.RequestDone}
	c.compact()
}

// compact compacts before anything else. A turn that failed goes on after it; one that had ended stays as it ended.
func (c *Chat) compact() {
	if turn := &c.user().Turn; turn.Result == v1beta1.TurnFailed {
		turn.Result, turn.Failure = "", ""
	} else {
		turn.CallsCanceled = true // Its end has given them up.
	}
	c.Error, c.compacting = "", true
	c.goOn()
}

func (c *Chat) compactable() bool {
	if c.replies == unknown {
		return len(c.History)-c.ContextStart > 1
	}
	return c.replies == someReplies
}

// summarize commits a summary. Messages at the end that nobody has answered stay part of the context, word for word.
func (c *Chat) summarize(name string) {
	start := len(c.History)
	for start > 0 && c.History[start-1].Role == v1beta1.RoleUser {
		start--
	}
	c.History = append(c.History, &Message{Name: name, Role: v1beta1.RoleSystem})
	c.beginContext(start)
	c.replies, c.compacting = noReplies, false
	c.spent++
}

func (c *Chat) beginContext(start int) {
	c.ContextStart = start
	c.boundaries = append(c.boundaries, boundary{start, len(c.History)})
}

// backToContext takes a history that was cut back to the context that its last message was part of.
func (c *Chat) backToContext() {
	c.boundaries = slices.DeleteFunc(c.boundaries, func(b boundary) bool { return b.length > len(c.History) })
	c.ContextStart = 0
	if n := len(c.boundaries); n > 0 {
		c.ContextStart = c.boundaries[n-1].start
	}
}

// countReplies finds out again whether there are replies in the context, in a history of which a message was deleted.
func (c *Chat) countReplies() {
	c.replies = unknown
	for _, m := range c.History[c.ContextStart:] {
		switch m.Role {
		case v1beta1.RoleAssistant:
			c.replies = someReplies
		case v1beta1.RoleSystem:
			c.replies = noReplies
		}
	}
}

// last is the newest message of the conversation itself.
func (c *Chat) last() *Message {
	for _, m := range slices.Backward(c.History) {
		if m.Role != v1beta1.RoleSystem {
			return m
		}
	}
	return nil
}
