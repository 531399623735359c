// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Holds are the queued messages of a chat that someone edits.
type Holds struct{ Chat *Chat }

// Hold is the annotation parley.dev/hold-until: a message that waits is not begun while someone edits it.
func (h Holds) Hold(name string) { h.Chat.Person(name).Held = true }

// Release removes the annotation. In a chat that is Waiting nothing else keeps the message.
func (h Holds) Release(name string) {
	m := h.Chat.Person(name)
	m.Held = false
	if m.State == v1beta1.MessageQueued && h.Chat.Phase == v1beta1.ChatWaiting {
		h.Chat.takeFromQueue(name)
		h.Chat.take(m)
	}
}

// nextQueued is the first message of the queue that no one holds; empty if there is none.
func nextQueued(c *Chat) string {
	i := slices.IndexFunc(c.Queue, func(name string) bool { return !c.Person(name).Held })
	if i < 0 {
		return ""
	}
	return c.Queue[i]
}

// MayHold reports whether the message is one to hold.
func (h Holds) MayHold(name string) bool {
	return slices.Contains(h.Chat.Queue, name) && !h.Chat.Person(name).Held && !h.Chat.toArchive()
}

// Names are those of the whole family.
func (h Holds) Names() (names []string) {
	for _, member := range h.Chat.family() {
		for _, m := range member.people {
			if m.Held {
				names = append(names, m.Name)
			}
		}
	}
	return names
}
