// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "slices"

// table is the state machine. What is not in it is refused. It is put together from the three things that move a chat:
// its messages, its turn, and people who manage it.
var table = slices.Concat(messageRules, turnRules, manageRules)

// to is one edge from each of the states to the same one.
func to(target State, from ...State) []Edge {
	edges := make([]Edge, 0, len(from))
	for _, s := range from {
		edges = append(edges, Edge{s, target})
	}
	return edges
}

// stay is one edge from each of the states to itself.
func stay(states ...State) []Edge {
	edges := make([]Edge, 0, len(states))
	for _, s := range states {
		edges = append(edges, Edge{s, s})
	}
	return edges
}
