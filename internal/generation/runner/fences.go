// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import "parley.dev/parley/internal/chat/fence"

// maxFences is how many fences are remembered. A late event repeats one of the last few, not one of thousands ago.
const maxFences = 4096

// fences remembers the fences that were attempted last. The zero value is empty.
type fences struct {
	seen map[fence.Fence]bool
	ring []fence.Fence
	next int
}

func (f *fences) has(of fence.Fence) bool { return f.seen[of] }

func (f *fences) add(of fence.Fence) {
	if f.seen == nil {
		f.seen = map[fence.Fence]bool{}
	}
	f.seen[of] = true
	if len(f.ring) < maxFences {
		f.ring = append(f.ring, of)
		return
	}
	delete(f.seen, f.ring[f.next])
	f.ring[f.next] = of
	f.next = (f.next + 1) % maxFences
}
