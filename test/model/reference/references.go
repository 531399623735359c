// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "parley.dev/parley/api/v1beta1"

// Refer lets the chat name a class or a model that does not exist yet: missing is what it says of that. Its messages
// wait, and so does the next step of a turn.
func (c *Chat) Refer(missing v1beta1.ErrorReason) { c.refers, c.missing = missing, missing }

// GiveReference creates what the chat names.
func (c *Chat) GiveReference() {
	c.missing = ""
	c.comeBack()
}

// TakeReference deletes what the chat names. An attempt under way goes on; the next one waits.
func (c *Chat) TakeReference() {
	c.missing = c.refers
	c.endHeld()
}

// Refers is what the chat says while the class or the model that it names does not exist; empty if it names none.
func (c *Chat) Refers() v1beta1.ErrorReason { return c.refers }

// IsReferenceMissing reports whether what the chat names does not exist.
func (c *Chat) IsReferenceMissing() bool { return c.missing != "" }
