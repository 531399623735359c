// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// owner is the shard that a namespace is in; it fails unless there is exactly one.
func owner(t *testing.T, namespace string, total int) int {
	t.Helper()
	found := -1
	for i := range max(1, total) {
		if (Shard{i, total}).Owns(namespace) {
			if found >= 0 {
				t.Fatalf("%q is in shards %d and %d of %d", namespace, found, i, total)
			}
			found = i
		}
	}
	if found < 0 {
		t.Fatalf("%q is in none of %d shards", namespace, total)
	}
	return found
}

func TestANamespaceIsInOneShard(t *testing.T) {
	for total := range 10 {
		for i := range 200 {
			owner(t, fmt.Sprint("team-", i), total)
		}
		if n := owner(t, "", total); n != 0 {
			t.Errorf("objects without a namespace are in shard %d of %d", n, total)
		}
	}
}

// TestNamesThatDifferLittleAreSharedOutEvenly: namespaces are numbered more often than named at random.
func TestNamesThatDifferLittleAreSharedOutEvenly(t *testing.T) {
	const names = 1000
	for _, form := range []string{"team-%d", "tenant-%02d", "user-%03d", "customer-%05d", "%d-dev"} {
		for _, total := range []int{2, 3, 8} {
			counts := make([]int, total)
			for i := range names {
				counts[owner(t, fmt.Sprintf(form, i), total)]++
			}
			for i, n := range counts {
				if even := names / total; n < even*7/10 || n > even*13/10 {
					t.Errorf("%s: shard %d of %d has %d of %d namespaces", form, i, total, n, names)
				}
			}
		}
	}
}

func TestOneShardMoreMovesNamespacesToItAlone(t *testing.T) {
	for total := 1; total < 8; total++ {
		moved := 0
		for i := range 1000 {
			ns := fmt.Sprint("team-", i)
			before, after := owner(t, ns, total), owner(t, ns, total+1)
			if before != after {
				moved++
				if after != total {
					t.Fatalf("from %d shards to %d, %s moves from %d to %d", total, total+1, ns, before, after)
				}
			}
		}
		if moved == 0 {
			t.Errorf("the last of %d shards has no namespace", total+1)
		}
	}
}

// TestNamespacesStayWhereTheyAre: managers of two versions share out namespaces in the same way.
func TestNamespacesStayWhereTheyAre(t *testing.T) {
	for ns, want := range map[string]int{"default": 2, "demo": 2, "team-a": 2, "team-b": 0, "parley-system": 1} {
		check.Equal(t, ns, want, owner(t, ns, 3))
	}
}

func TestShardsHaveLeasesAndFirstKeepsUnshardedOne(t *testing.T) {
	if all, first := (Shard{}).Lease(), (Shard{0, 3}).Lease(); all != first {
		t.Errorf("shard 0 has the Lease %s, and a manager of all %s", first, all)
	}
	if (Shard{1, 3}).Lease() != (Shard{1, 2}).Lease() || (Shard{1, 3}).Lease() == (Shard{2, 3}).Lease() {
		t.Error("a shard has no Lease of its own")
	}
}

func TestAShardThatThereIsNotIsRefused(t *testing.T) {
	for _, s := range []Shard{{}, {0, 1}, {0, 2}, {1, 2}} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, s := range []Shard{{2, 2}, {-1, 2}, {1, 0}, {1, 1}, {0, -1}} {
		if s.Validate() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}
