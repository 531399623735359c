// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history reads the chain of a chat's committed messages: each names its parent, and the chat names the newest
// one, the head.
//
// The invariant it keeps: a chain is handed out whole or not at all. A missing message, a circle, or a chain of another
// length than the chat says is a typed error, so that no provider is ever sent a history with a gap.
//
// Where a message stands is said in one of three places: generated messages carry it in their spec; the others get it
// in their status after their commit; and until then the chat's own status has it, of the newest ones. Of and
// RecordedBy know these places, and nothing else does. The package is pure.
package history

// Node is what this package needs to know of a message.
type Node struct {
	// Name of the ChatMessage.
	Name string
	// Placed is true when Parent and Index are known. They always are for a generated message, which carries them in its
	// spec. A User message gets them in its status after its commit, so that a crash can leave them unwritten.
	Placed bool
	// Parent is the name of the message before it; empty for the first.
	Parent string
	// Index in the history, from 0.
	Index int64
	// Version of the history that the message's commit made.
	Version int64
}

// Turn is where the User message stands that began the turn, as Chat.status.turn says,
// or the message with a client's results.
type Turn struct {
	// Message is the name of the User message; empty when there was no turn yet.
	Message string
	// Parent is the name of the message before it; empty for the first.
	Parent string
	// Index of the User message in the history, from 0.
	Index int64
	// Version of the history that its commit made.
	Version int64
}

// Ref is what a chat says of its history: Chat.status.history and Chat.status.turn.
type Ref struct {
	// Head is the name of the newest committed message; empty when there is none.
	Head string
	// Length is the number of committed messages.
	Length int64
	// From is the index of the oldest message that Walk goes to; 0: the first.
	From int64
	// Turn under way, or else the last one.
	Turn Turn
	// Previous is where the message stands that began the turn before, if that message may not say so yet; its Message is
	// empty otherwise.
	Previous Turn
	// Results is where the newest message with a client's results stands; its Message is empty when there is none.
	Results Turn
}

// place is n where it stands in the history, for a message that the chat itself places.
func (r Ref) place(n Node) Node { return r.Results.place(r.Turn.place(r.Previous.place(n))) }

// place is n where it stands in the history. The turn record is newer than the message's own status and wins.
func (t Turn) place(n Node) Node {
	if t.Message != "" && n.Name == t.Message {
		n.Placed, n.Parent, n.Index, n.Version = true, t.Parent, t.Index, t.Version
	}
	return n
}
