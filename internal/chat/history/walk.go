// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import "slices"

// Walk is the chain of the committed messages, oldest first, with every message placed. It goes from the head to the
// root, or to the message of index ref.From, and stops before the first message for which known is true; a nil known
// stops nowhere. What it has walked is checked as strictly when it stops as when it reaches the root.
//
// Errors: *MissingError, *UnplacedError, *CycleError, *LengthError, *IndexError.
func Walk(ref Ref, lookup func(name string) (Node, bool), known func(Node) bool) ([]Node, error) {
	w := walk{ref: ref, lookup: lookup, seen: map[string]bool{}, commits: commits{}}
	w.commits.note(ref.Tail)
	name, child, left := ref.Head, "", ref.Length
	for ; name != "" && (left > ref.From || ref.From == 0); left-- {
		n, err := w.step(name, child, left)
		if err != nil {
			return nil, err
		}
		if known != nil && known(n) {
			slices.Reverse(w.chain)
			return w.chain, nil
		}
		w.chain = append(w.chain, n)
		name, child = n.Parent, n.Name
	}
	if left != min(ref.From, ref.Length) {
		return nil, &LengthError{Want: ref.Length, Got: int64(len(w.chain))}
	}
	slices.Reverse(w.chain)
	return w.chain, nil
}

type walk struct {
	ref     Ref
	lookup  func(string) (Node, bool)
	seen    map[string]bool
	commits commits
	chain   []Node
}

// step is the message of this name, which child names as its parent, with left messages to go including it.
func (w *walk) step(name, child string, left int64) (Node, error) {
	if w.seen[name] {
		return Node{}, &CycleError{Message: name}
	}
	w.seen[name] = true
	if left <= 0 {
		return Node{}, &LengthError{Want: w.ref.Length, Got: w.ref.Length + 1}
	}
	n, ok := w.lookup(name)
	if !ok {
		return Node{}, &MissingError{Child: child, Parent: name}
	}
	if n = w.commits.place(n); !n.Placed {
		return Node{}, &UnplacedError{Message: name}
	}
	if n.Index != left-1 {
		return Node{}, &IndexError{Message: name, Want: left - 1, Got: n.Index}
	}
	w.commits.note(n.Follows)
	return n, nil
}
