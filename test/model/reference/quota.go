// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"maps"
	"math"
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Unlimited is the number of a quota that leaves it to others: their defaults are beyond what a test has.
const Unlimited = math.MaxInt

// Counts of chats without a parent, and of sub-chats.
type Counts struct{ Chats, SubChats int }

// Of is the count of sub-chats, or that of the others.
func (c Counts) Of(sub bool) int {
	if sub {
		return c.SubChats
	}
	return c.Chats
}

// Smallest of each number that quotas say.
func Smallest(quotas map[string]Counts) Counts {
	most := Counts{Unlimited, Unlimited}
	for _, quota := range quotas {
		most.Chats, most.SubChats = min(most.Chats, quota.Chats), min(most.SubChats, quota.SubChats)
	}
	return most
}

// namespace is what chats share: the quotas that say how many of them generate at once, and the chats that wait for
// others to be done.
type namespace struct {
	quotas map[string]Counts
	chats  []*Chat
	// modelMissing is true while there is no default model.
	modelMissing bool
	// waiting are those that could begin a step if they were let, first the one that has waited longest.
	waiting []*Chat
}

// Meet creates another chat in the namespace.
func (c *Chat) Meet(name string, peer *Chat) {
	peer.Name, c.Peers = name, append(c.Peers, peer)
	c.enter(peer)
}

// Peer finds another chat of the namespace; nil if there is none.
func (c *Chat) Peer(name string) *Chat {
	for _, peer := range c.Peers {
		if peer.Name == name {
			return peer
		}
	}
	return nil
}

// enter lets the new chat share c's namespace.
func (c *Chat) enter(other *Chat) {
	other.namespace = c.namespace
	c.namespace.chats = append(c.namespace.chats, other)
}

// All are the chat, its sub-chat and its peers.
func (c *Chat) All() []*Chat { return append(c.family(), c.Peers...) }

// SetQuota creates a quota of the namespace, or changes it.
func (c *Chat) SetQuota(name string, most Counts) { c.namespace.quotas[name] = most }

// DeleteQuota deletes a quota of the namespace.
func (c *Chat) DeleteQuota(name string) { delete(c.namespace.quotas, name) }

// HasQuota reports whether there is a quota of the name.
func (c *Chat) HasQuota(name string) bool {
	_, there := c.namespace.quotas[name]
	return there
}

// Quotas are the names of the namespace's quotas, in order.
func (c *Chat) Quotas() []string { return slices.Sorted(maps.Keys(c.namespace.quotas)) }

func (c *Chat) isSub() bool { return c.above != nil }

// isLet reports whether the chat may begin its next step: others of its sort leave room for it. A chat that may not
// waits behind those that wait already.
func (c *Chat) isLet() bool {
	n, others := c.namespace, 0
	for _, other := range n.chats {
		if other != c && other.isSub() == c.isSub() && other.Attempt != nil {
			others++
		}
	}
	let, at := others < Smallest(n.quotas).Of(c.isSub()), slices.Index(n.waiting, c)
	switch {
	case let && at >= 0:
		n.waiting = slices.Delete(n.waiting, at, at+1)
	case !let && at < 0:
		n.waiting = append(n.waiting, c)
	}
	return let
}

// waitsForOthers reports whether nothing but a quota keeps the chat from its next step.
func (c *Chat) waitsForOthers() bool { return slices.Contains(c.namespace.waiting, c) }

// HandOut gives the places that are free to the chats that have waited longest. Who wants none any more waits no more.
func (c *Chat) HandOut() {
	n := c.namespace
	n.waiting = slices.DeleteFunc(n.waiting, func(w *Chat) bool { return !w.wantsToBegin() })
	for _, w := range slices.Clone(n.waiting) {
		w.Proceed()
	}
}

// wantsToBegin reports whether the chat would begin a step if the quotas let it.
func (c *Chat) wantsToBegin() bool {
	return slices.Contains(c.namespace.chats, c) && c.Phase == v1beta1.ChatRunning && c.Attempt == nil && !c.held() &&
		c.blockedBy() == "" && !c.isOverBudget() && (c.failed > 0 || !c.waits())
}
