// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import "slices"

// retain forgets the oldest commands that have ended when there are too many, and removes the oldest outputs when there
// is too much. A command without its output still answers to its key.
func (t *table) retain() {
	t.retaining.Lock()
	defer t.retaining.Unlock()
	ended, limits := t.retainSessions(t.ended()), t.options.Limits
	var stored int64
	for _, c := range ended {
		stored += c.output.kept()
	}
	for i, c := range ended {
		if len(ended)-i > limits.Finished {
			stored -= c.output.discard()
			t.drop(c)
			continue
		}
		if stored <= limits.FinishedBytes {
			return
		}
		stored -= c.output.discard()
	}
}

// retainSessions forgets the oldest sessions that have ended when there are too many: each step of a chat may start
// some, which must not displace the commands of a model. It returns what is left.
func (t *table) retainSessions(ended []*command) (left []*command) {
	sessions := 0
	for _, c := range ended {
		if c.current().Session {
			sessions++
		}
	}
	for _, c := range ended {
		if !c.current().Session || sessions <= t.options.Limits.FinishedSessions {
			left = append(left, c)
			continue
		}
		sessions--
		c.output.discard()
		t.drop(c)
	}
	return left
}

// ended are the commands of which nothing runs and all is on disk, those first that ended first.
func (t *table) ended() (ended []*command) {
	for _, c := range t.all() {
		if c.current().concluded {
			ended = append(ended, c)
		}
	}
	slices.SortStableFunc(ended, func(a, b *command) int {
		return a.current().EndedAt.Compare(b.current().EndedAt)
	})
	return ended
}
