// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math/rand/v2"
	"slices"
	"testing"

	"parley.dev/parley/api/v1beta1"
)

// TestDamagedChainKeepsMessagesBeforeFirstGap deletes messages of chains that were cut and grew again,
// with results still around that came too late.
func TestDamagedChainKeepsMessagesBeforeFirstGap(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 3))
		chain, left, version := []Node{}, []Node{}, int64(0)
		for n := range 30 {
			if random.IntN(8) == 0 && len(chain) > 0 {
				cut := random.IntN(len(chain))
				late := chain[cut]
				late.Name, late.Parent = "late "+late.Name, "gone"
				left, chain = append(left, late), slices.Clone(chain[:cut])
			}
			version++
			node := Node{Name: string(rune('a'+n%26)) + string(rune('0'+n/26)), Placed: true, Index: int64(len(chain)),
				Version: version}
			if len(chain) > 0 {
				node.Parent = chain[len(chain)-1].Name
			}
			chain = append(chain, node)
		}
		ref := Ref{Head: chain[len(chain)-1].Name, Length: int64(len(chain))}
		nodes, want := slices.Clone(left), ref.Length
		for i, node := range chain {
			if random.IntN(6) == 0 {
				want = min(want, int64(i))
				continue
			}
			nodes = append(nodes, node)
		}
		kept, missing := Whole(ref, nodes)
		if missing != want || !slices.Equal(names(kept), names(chain[:want])) {
			t.Fatalf("seed %d: %v are left before %d, want %v", seed, names(kept), missing, names(chain[:want]))
		}
	}
}

func TestTailPlacesMessagesDespiteMissingOthers(t *testing.T) {
	ref := Ref{Head: "reply", Length: 4, Tail: []v1beta1.CommittedMessage{
		{Message: "u2", Parent: "gone", Position: 2, HistoryVersion: 3}}}
	nodes := []Node{user("u0", "", 0), {Name: "u2"}, reply("reply", "u2", 3)}
	if kept, missing := Whole(ref, nodes); missing != 1 || len(kept) != 1 || kept[0].Name != "u0" {
		t.Errorf("%v are left before %d", names(kept), missing)
	}
	if kept, missing := Whole(Ref{}, nil); missing != 0 || len(kept) != 0 {
		t.Errorf("%v are left of nothing, before %d", names(kept), missing)
	}
}

func TestTurnPlacesItsMessageBeforeAGap(t *testing.T) {
	ref := Ref{Head: "results", Length: 3, Tail: []v1beta1.CommittedMessage{{Message: "u0", HistoryVersion: 1}}}
	results := reply("results", "gone", 2)
	results.Version = 3
	nodes := []Node{{Name: "u0"}, results} // The status of u0 is late.
	if kept, missing := Whole(ref, nodes); missing != 1 || len(kept) != 1 || kept[0].Name != "u0" {
		t.Errorf("%v are left before %d", names(kept), missing)
	}
}
