// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Spawn creates a sub-chat. A chat has one at a time here.
func (c *Chat) Spawn(name string, sub *Chat) {
	sub.Name, sub.above, c.Sub = name, c, sub
	c.enter(sub)
	sub.putAway()
}

// DeleteSub deletes the sub-chat. Nobody waits for it any more. What it has cost counts for the budget that there is.
func (c *Chat) DeleteSub() {
	if c.Limits.Budget > 0 {
		c.spent += c.Sub.spent
	}
	c.namespace.chats = slices.DeleteFunc(c.namespace.chats, func(member *Chat) bool { return member == c.Sub })
	c.Sub = nil
	c.putAway()
	c.Proceed()
}

// family is the chat and what is below it.
func (c *Chat) family() []*Chat {
	if c.Sub == nil {
		return []*Chat{c}
	}
	return []*Chat{c, c.Sub}
}

// Interrupting reports whether an attempt was told to stop, here, in the sub-chat or in a peer.
func (c *Chat) Interrupting() bool {
	return slices.ContainsFunc(c.All(), func(m *Chat) bool { return m.Phase == v1beta1.ChatInterrupting })
}

// held reports whether no attempt may begin, here or because of the chat above.
func (c *Chat) held() bool {
	return c.Suspended || c.comingBack || c.above != nil && c.above.Suspended
}

// toArchive reports whether the chat is to be archived, by itself or with the chat above.
func (c *Chat) toArchive() bool {
	return c.ToArchive || c.above != nil && c.above.ToArchive
}

// waits reports whether a call that Parley runs next waits for the sub-chat, which is at work. It does not wait for a
// budget.
func (c *Chat) waits() bool {
	own, _ := c.outstanding()
	return c.Sub != nil && c.Sub.busy() && !c.Sub.isOverBudget() &&
		slices.ContainsFunc(own, func(call Call) bool { return call.WaitsFor == c.Sub.Name })
}
