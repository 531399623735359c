// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import "parley.dev/parley/internal/parts"

// maxFences is how many fences are remembered. A late event repeats one of the last few, not one of thousands ago.
const maxFences = 4096

// fences remembers the fences that were attempted last. The zero value is empty.
type fences struct {
	seen map[parts.Episode]bool
	ring []parts.Episode
	next int
}

func (f *fences) has(fence parts.Episode) bool { return f.seen[fence] }

func (f *fences) add(fence parts.Episode) {
	if f.seen == nil {
		f.seen = map[parts.Episode]bool{}
	}
	f.seen[fence] = true
	if len(f.ring) < maxFences {
		f.ring = append(f.ring, fence)
		return
	}
	delete(f.seen, f.ring[f.next])
	f.ring[f.next] = fence
	f.next = (f.next + 1) % maxFences
}
