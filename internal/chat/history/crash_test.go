// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
)

// world is a chat and its messages as the API server holds them, and the chain as it must be.
type world struct {
	ref   Ref
	nodes map[string]Node
	want  []string
	made  int
}

// step does what an operator does with one event: the chat records what people say, and a reply takes that along.
func (w *world) step(isUser bool) {
	w.made++
	name := fmt.Sprintf("m%d", w.made)
	if !isUser && w.ref.Length > 0 {
		n := reply(name, w.ref.Head, w.ref.Length)
		n.Follows, w.ref.Tail = w.ref.Tail, nil
		w.nodes[name] = n
	} else {
		w.nodes[name] = Node{Name: name, UID: name}
		w.ref.Tail = append(w.ref.Tail, v1beta1.CommittedMessage{Message: name, UID: name, Parent: w.ref.Head,
			Position: w.ref.Length, HistoryVersion: int64(w.made)})
	}
	w.ref.Head = name
	w.ref.Length++
	w.want = append(w.want, name)
}

func (w *world) lookup(name string) (Node, bool) {
	n, ok := w.nodes[name]
	return n, ok
}

func TestChainNeedsNoStatusOfMessages(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &world{nodes: map[string]Node{}}
		for range 40 {
			w.step(random.IntN(3) == 0)
			chain, err := Walk(w.ref, w.lookup, nil)
			if err != nil || !slices.Equal(names(chain), w.want) {
				t.Fatalf("seed %d: got %v, %v, want %v", seed, names(chain), err, w.want)
			}
			if diff := cmp.Diff(w.ref.Tail, Tail(chain)); diff != "" {
				t.Fatalf("seed %d: the tail of the chain (-want +got):\n%s", seed, diff)
			}
		}
	}
}

func TestDamagedChainIsNeverAcceptedAsWhole(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		w := &world{nodes: map[string]Node{}}
		for range 12 {
			w.step(random.IntN(3) == 0)
		}
		victim := slices.Sorted(maps.Keys(w.nodes))[random.IntN(len(w.nodes))]
		n := w.nodes[victim]
		switch damage := random.IntN(4); {
		case damage == 0:
			delete(w.nodes, victim)
		case damage == 1 && n.Placed:
			n.Parent = w.ref.Head
			w.nodes[victim] = n
		case damage == 2 && n.Placed:
			n.Index++
			w.nodes[victim] = n
		case damage < 3: // It was created again under its name.
			n.UID, n.Placed = "new", false
			w.nodes[victim] = n
		default:
			w.ref.Length += int64(1 - 2*random.IntN(2))
		}
		if chain, err := Walk(w.ref, w.lookup, nil); err == nil {
			t.Fatalf("seed %d: %s was damaged, and %v was handed out", seed, victim, names(chain))
		}
	}
}
