// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import tea "charm.land/bubbletea/v2"

// requests are those that a person who leaves waits for.
type requests struct {
	// open is how many are not done.
	open int
	// inOrder holds those that are done one after another, so that messages keep their order; the first one runs.
	inOrder []tea.Cmd
}

// add makes a request; nil: none.
func (r *requests) add(do func() outcome) tea.Cmd {
	if do == nil {
		return nil
	}
	r.open++
	return func() tea.Msg {
		o := do()
		o.request = true
		return o
	}
}

// addInOrder makes a request after those before it.
func (r *requests) addInOrder(do func() outcome) tea.Cmd {
	r.inOrder = append(r.inOrder, r.add(func() outcome {
		o := do()
		o.inOrder = true
		return o
	}))
	if len(r.inOrder) > 1 {
		return nil
	}
	return r.inOrder[0]
}

// finish notes that a request is done, and returns the one that comes next.
func (r *requests) finish(o outcome) (next tea.Cmd) {
	if o.inOrder {
		if r.inOrder = r.inOrder[1:]; len(r.inOrder) > 0 {
			next = r.inOrder[0]
		}
	}
	if o.request {
		r.open--
	}
	return next
}
