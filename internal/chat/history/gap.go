// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import "math"

// Whole is the part of the chain before its first missing message, oldest first, and the index of that message; the
// index is ref.Length when none is missing.
//
// Where a message is missing, the one before it is the one of that index that was committed last before what followed:
// versions of the history only grow along a chain. Nodes must not hold messages that have left the history. Results
// that were never committed may be among them; one whose own parent is missing is not taken for part of the chain.
func Whole(ref Ref, nodes []Node) (chain []Node, missing int64) {
	byName, known := make(map[string]Node, len(nodes)), commits{}
	known.note(ref.Tail)
	for _, n := range nodes {
		byName[n.Name] = known.place(n)
	}
	byIndex := placedNodes(byName)
	chain = make([]Node, ref.Length)
	missing = ref.Length
	name, before := ref.Head, int64(math.MaxInt64)
	for i := ref.Length - 1; i >= 0; i-- {
		n, ok := byName[name]
		if n = known.place(n); !ok || !n.Placed || n.Index != i {
			missing = i
			name = newest(byIndex[i-1], before)
			continue
		}
		known.note(n.Follows) // Of messages outside the history nothing is believed.
		chain[i], name, before = n, n.Parent, n.Version
	}
	return chain[:missing], missing
}

// placedNodes are the nodes that say where they stand and whose parent is among them, or that are the first, by index.
func placedNodes(byName map[string]Node) map[int64][]Node {
	byIndex := map[int64][]Node{}
	for _, n := range byName {
		own := commits{}
		own.note(n.Follows)
		parent, ok := byName[n.Parent]
		if parent = own.place(parent); n.Placed && (ok && parent.Index == n.Index-1 || n.Index == 0 && n.Parent == "") {
			byIndex[n.Index] = append(byIndex[n.Index], n)
		}
	}
	return byIndex
}

// newest is the name of the node that was committed last before the version; empty if there is none.
func newest(nodes []Node, before int64) string {
	best := Node{Version: -1}
	for _, n := range nodes {
		if n.Version < before && n.Version > best.Version {
			best = n
		}
	}
	return best.Name
}
