// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Anew deletes the chat and creates another one of its name at once. What was said in the old one goes with it.
func (c *Chat) Anew(limits Limits) {
	other := New(limits)
	other.Name, other.Peers, other.namespace = c.Name, c.Peers, c.namespace
	*c = *other
}

// MayBeginAnew reports whether it is certain what another chat of the name finds: no message that the old one has not
// taken up, no decision, no sub-chat, and no queue in which it might take the old one's place.
func (c *Chat) MayBeginAnew() bool {
	return c.above == nil && c.Sub == nil && len(c.approvals) == 0 && len(c.namespace.quotas) == 0 &&
		!slices.ContainsFunc(c.people, func(m *Message) bool { return m.State == v1beta1.MessagePending })
}
