// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history reads the chain of a chat's committed messages: each names its parent, and the chat names the newest
// one, the head.
//
// The invariant it keeps: a chain is handed out whole or not at all. A missing message, a circle, or a chain of another
// length than the chat says is a typed error, so that no provider is ever sent a history with a gap.
//
// Where a message stands: a generated one says it in its spec; it also says it of the messages of people and clients
// that it follows; and of those that no generated message follows yet, the chat's status says it. Their own status says
// it, too, for people, and may say it late. The package is pure.
package history

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/api/v1beta1"
)

// Node is what this package needs to know of a message.
type Node struct {
	// Name and UID of the ChatMessage.
	Name, UID string
	// Placed is true when Parent, Index and Version are known.
	Placed bool
	// Parent is the name of the message before it; empty for the first.
	Parent string
	// Index in the history, from 0.
	Index int64
	// Version of the history that the message's commit made.
	Version int64
	// Commit of a message of a person or a client; nil for a generated one, and where it is not known.
	Commit *v1beta1.CommittedMessage
	// Follows are the commits that a generated message records: those between it and the generated message before.
	Follows []v1beta1.CommittedMessage
}

// Ref is what a chat says of its history: Chat.status.history and Chat.status.internal.tail.
type Ref struct {
	// Head is the name of the newest committed message; empty when there is none.
	Head string
	// Length is the number of committed messages.
	Length int64
	// From is the index of the oldest message that Walk goes to; 0: the first.
	From int64
	// Tail are the commits behind the newest generated message.
	Tail []v1beta1.CommittedMessage
}

// unknown is the position in a commit of which a cache has name and version alone.
const unknown = -1

// Named is what a cache keeps of a commit that a generated message records: its version, and its name unless it is the
// last one, which is the parent of the message.
func Named(commit *v1beta1.CommittedMessage, last bool) v1beta1.CommittedMessage {
	named := v1beta1.CommittedMessage{Message: commit.Message, HistoryVersion: commit.HistoryVersion, Position: unknown}
	if last {
		named.Message = ""
	}
	return named
}

// Records reports whether the generated message, which may be as a cache keeps it, records these commits.
func Records(m *v1beta1.ChatMessage, tail []v1beta1.CommittedMessage) bool {
	for i := range m.Spec.Follows {
		if m.Spec.Follows[i].Position == unknown && i < len(tail) {
			tail = slices.Clone(tail)
			tail[i] = Named(&tail[i], i == len(tail)-1)
		}
	}
	return equality.Semantic.DeepEqual(m.Spec.Follows, tail)
}

// commits are the newest commits that are known of messages, by name.
type commits map[string]*v1beta1.CommittedMessage

func (c commits) note(recorded []v1beta1.CommittedMessage) {
	for i := range recorded {
		commit := &recorded[i]
		if commit.Position == unknown {
			continue
		}
		if known := c[commit.Message]; known == nil || known.HistoryVersion <= commit.HistoryVersion {
			c[commit.Message] = commit
		}
	}
}

// place is n where its commit put it, if that is known. A message that has only the name of the committed one stands
// nowhere.
func (c commits) place(n Node) Node {
	commit := c[n.Name]
	switch {
	case commit == nil:
		return n
	case commit.UID != "" && commit.UID != n.UID:
		return Node{Name: n.Name, UID: n.UID}
	}
	return n.at(commit)
}

func (n Node) at(commit *v1beta1.CommittedMessage) Node {
	n.Placed, n.Parent, n.Index, n.Version = true, commit.Parent, commit.Position, commit.HistoryVersion
	n.Commit = commit
	return n
}

// Tail are the commits at the end of the chain, behind its newest generated message.
func Tail(chain []Node) (tail []v1beta1.CommittedMessage) {
	from := len(chain)
	for from > 0 && chain[from-1].Commit != nil {
		from--
	}
	for _, n := range chain[from:] {
		tail = append(tail, *n.Commit)
	}
	return tail
}
