// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import "slices"

// retain forgets the oldest commands that have ended when there are too many, and removes the oldest outputs when there
// is too much. A command without its output still answers to its key.
func (m *Manager) retain() {
	m.retaining.Lock()
	defer m.retaining.Unlock()
	ended, limits := m.ended(), m.options.Limits
	var stored int64
	for _, c := range ended {
		stored += c.output.kept()
	}
	for i, c := range ended {
		if len(ended)-i > limits.Finished {
			stored -= c.output.discard()
			m.drop(c)
			continue
		}
		if stored <= limits.FinishedBytes {
			return
		}
		stored -= c.output.discard()
	}
}

// ended are the commands that have ended for process 1, too, those first that ended first.
func (m *Manager) ended() (ended []*command) {
	for _, c := range m.all() {
		if c.isConcluded() {
			ended = append(ended, c)
		}
	}
	slices.SortStableFunc(ended, func(a, b *command) int {
		return a.current().EndedAt.Compare(b.current().EndedAt)
	})
	return ended
}
