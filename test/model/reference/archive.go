// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// Archive sets spec.archived. The turn under way comes first, and so do the messages that are queued by then; no other
// message is taken up.
func (c *Chat) Archive() {
	c.ToArchive = true
	c.putAway()
}

// putAway archives a chat that is to be archived, as it stands, once nothing is under way.
func (c *Chat) putAway() {
	if c.ToArchive && !c.Archived && !c.busy() {
		c.asPutAway, c.Archived = c.queued(), true
	}
}

// Unarchive takes spec.archived back. What people did meanwhile counts now: what they deleted, then what they edited,
// then what they told to cut in, and last what they sent. No attempt begins before all of that is done.
func (c *Chat) Unarchive() {
	wasArchived, held := c.Archived, c.Suspended
	c.ToArchive, c.Archived = false, false
	c.Suspended = true
	if wasArchived {
		c.catchUp()
	}
	for _, m := range c.people {
		if m.Role == v1alpha1.RoleUser && m.State == v1alpha1.MessagePending {
			c.take(m)
		}
	}
	if !held {
		c.Resume()
	}
}

// catchUp does to the conversation what people have done to its messages while the chat was archived.
func (c *Chat) catchUp() {
	if at := slices.IndexFunc(c.History, func(m *Message) bool { return m.gone }); at >= 0 {
		c.goOnWithout(c.History[at])
	}
	if at := slices.IndexFunc(c.History, func(m *Message) bool { return m.Edited }); at >= 0 {
		c.beginAgain(c.History[at])
	}
	for _, m := range c.people {
		m.Edited = false
	}
	for _, name := range c.lateCutIns() {
		c.CutIn(name)
	}
}

// lateCutIns are the queued messages that were told to cut in while the chat was archived.
func (c *Chat) lateCutIns() (names []string) {
	for _, name := range c.Queue {
		if !slices.Contains(c.asPutAway, Waits(name, c.Person(name).CutsIn)) {
			names = append(names, name)
		}
	}
	return names
}

// whole is what is left of the history that can be followed from its end: while the chat is archived, a message that
// was deleted leaves a hole.
func (c *Chat) whole() []*Message {
	for i, m := range slices.Backward(c.History) {
		if m.gone {
			return c.History[i+1:]
		}
	}
	return c.History
}
