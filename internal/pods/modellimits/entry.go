// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modellimits

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

type state int

const (
	// refused: Enter returned what limits the chat, and neither Wait nor Leave has followed yet. It counts nowhere.
	refused state = iota
	waiting
	// reserved: Enter returned nil, and Hold has not followed yet.
	reserved
	calling
)

// entry is what the gate knows of a chat.
type entry struct {
	Call
	state state
	// start is the request of a reserved place.
	start time.Time
	// until is Held.Until as Enter returned it last.
	until time.Time
	// requeued is true if the chat can enter or must look again, and has not called Enter since.
	requeued bool
}

func (e *entry) equal(call *Call) bool {
	return e.Config == call.Config && e.Since.Equal(call.Since) && e.Started.Equal(call.Started) &&
		e.Tokens == call.Tokens && e.Blocked == call.Blocked
}

// keepSince has the chat keep its place in the order, as long as the gate knows it: what callers have from a status may
// be rounded.
func (c *Call) keepSince(before *entry) {
	if before != nil && before.Config == c.Config && !before.Since.IsZero() {
		c.Since = before.Since
	}
}

// compare orders waiting chats: first the one that has waited longest, last those that have not waited yet.
func (c *Call) compare(other *Call) int {
	if a, b := c.Since.IsZero(), other.Since.IsZero(); a != b {
		if a {
			return 1
		}
		return -1
	}
	return cmp.Or(c.Since.Compare(other.Since), cmp.Compare(c.Chat.Namespace, other.Chat.Namespace),
		cmp.Compare(c.Chat.Name, other.Chat.Name))
}

// add counts the entry. The caller holds mu, here and in all of this file.
func (g *Gate) add(e *entry) {
	c := g.configNamed(e.Config)
	g.chats[e.Chat] = e
	switch e.state {
	case waiting:
		i, _ := c.find(e)
		c.waiting = slices.Insert(c.waiting, i, e)
	case reserved:
		c.starts.add(e.start, e.Chat, 1)
		c.count(e, 1)
	case calling:
		if c.starts.find(e.Started, e.Chat) < 0 {
			c.starts.add(e.Started, e.Chat, 1)
		}
		c.count(e, 1)
	}
}

// remove takes the chat's entry out of all counts and returns it; nil if there is none. The request of a call that was
// under way still counts, that of a reserved place does not. Call update afterwards.
func (g *Gate) remove(chat types.NamespacedName) *entry {
	e := g.chats[chat]
	if e == nil {
		return nil
	}
	c := g.configNamed(e.Config)
	delete(g.chats, chat)
	switch e.state {
	case waiting:
		if i, found := c.find(e); found {
			c.waiting = slices.Delete(c.waiting, i, i+1)
		}
	case reserved:
		c.starts.remove(e.start, chat)
		c.count(e, -1)
	case calling:
		c.count(e, -1)
	}
	return e
}

func (g *Gate) configNamed(name types.NamespacedName) *config {
	c := g.configs[name]
	if c == nil {
		c = &config{name: name}
		g.configs[name] = c
	}
	return c
}
