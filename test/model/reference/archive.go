// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "slices"

// Archive sets spec.archived. The turn under way comes first, and so do the messages that are queued by then; no other
// message is taken up.
func (c *Chat) Archive() {
	c.ToArchive = true
	c.endHeld()
	c.putAway()
}

// putAway archives the chats that are to be archived together, as they stand, once nothing is under way in any of them.
// One that nobody has said anything in need not wait for the others.
func (c *Chat) putAway() {
	for _, member := range c.family() {
		member.Archived = member.Archived || member.toArchive() && !member.Begun
	}
	if c.above != nil && c.above.ToArchive {
		c.above.putAway()
		return
	}
	if !c.ToArchive || slices.ContainsFunc(c.family(), (*Chat).busy) {
		return
	}
	for _, member := range c.family() {
		if !member.Archived {
			member.asPutAway, member.Archived = member.queued(), true
		}
	}
}

// Unarchive takes spec.archived back, and the sub-chat comes back with its parent, unless it is to be archived itself.
func (c *Chat) Unarchive() {
	c.ToArchive = false
	for _, member := range c.family() {
		member.comeBack()
		member.putAway()
	}
}

// comeBack lets count what people did meanwhile: what they deleted, then what they edited, then what they told to cut
// in, and last what they sent. No attempt begins before all of that is done.
func (c *Chat) comeBack() {
	if c.toArchive() {
		return
	}
	c.comingBack = true
	if c.Archived {
		c.Archived = false
		c.catchUp()
	}
	for _, m := range c.people {
		if m.waitsForChat() {
			c.take(m)
		}
	}
	c.comingBack = false
	c.Proceed()
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

// Edited reports whether a message was edited, and the chat is archived.
func (c *Chat) Edited() bool {
	return slices.ContainsFunc(c.people, func(m *Message) bool { return m.Edited })
}

// lateCutIns are the queued messages that were told to cut in while the chat was archived.
func (c *Chat) lateCutIns() (names []string) {
	for _, name := range c.Queue {
		if !slices.Contains(c.asPutAway, Waits(name, c.Person(name).CutsIn, false)) {
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
