// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// TakeModel takes the default model of the namespace away. An attempt under way goes on; the next one waits.
func (c *Chat) TakeModel() {
	c.namespace.modelMissing = true
	for _, chat := range c.All() {
		chat.endHeld()
	}
}

// GiveModel gives the namespace a default model. Chats take up what was said to them meanwhile.
func (c *Chat) GiveModel() {
	c.namespace.modelMissing = false
	for _, chat := range c.All() {
		chat.comeBack()
	}
}

// HasModel reports whether the namespace has a default model.
func (c *Chat) HasModel() bool { return !c.namespace.modelMissing }

// MayLoseModel reports whether each chat finds out at once that its model is missing. A compaction of a turn that has
// ended does so with its next event.
func (c *Chat) MayLoseModel() bool {
	return !slices.ContainsFunc(c.All(), func(m *Chat) bool {
		return m.Phase == v1beta1.ChatRunning && m.Attempt == nil && m.user().Turn.Result != ""
	})
}

// isModelMissing reports whether nothing but its model keeps the chat from working. The default is nothing to a chat
// that names one.
func (c *Chat) isModelMissing() bool {
	return c.namespace.modelMissing && c.missing == "" && c.refers != v1beta1.ErrorModelConfigNotFound
}

// blockedBy is why the chat takes nothing up; empty if it does.
func (c *Chat) blockedBy() v1beta1.ErrorReason {
	if c.isModelMissing() {
		return v1beta1.ErrorModelConfigNotFound
	}
	return c.missing
}

// isBlocked reports whether a message waits because its chat cannot answer it.
func (c *Chat) isBlocked() bool {
	return c.blockedBy() != "" && !c.busy() && slices.ContainsFunc(c.people, (*Message).waitsForChat)
}

// TakeWaiting lets chats queue what waits for a model or a class, once something else has set them to work, such as
// calls before a deleted message.
func (c *Chat) TakeWaiting() {
	for _, chat := range c.All() {
		for _, m := range chat.people {
			if m.waitsForChat() && chat.busy() && !chat.toArchive() {
				chat.take(m)
			}
		}
	}
}

// waitsForChat reports whether the message is a User's that is neither taken up nor refused.
func (m *Message) waitsForChat() bool {
	return m.Role == v1beta1.RoleUser && m.State == v1beta1.MessagePending
}
