// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// world is a chat and its messages as the API server holds them, and the chain as it must be.
type world struct {
	ref   Ref
	nodes map[string]Node
	want  []string
	made  int
}

// step does what an operator does with one event, and crashes after the write of the chat if told so.
func (w *world) step(isUser, crash bool) {
	w.made++
	name := fmt.Sprintf("m%d", w.made)
	if !isUser && w.ref.Length > 0 {
		w.nodes[name] = reply(name, w.ref.Head, w.ref.Length)
		w.commit(name)
		return
	}
	w.nodes[name] = Node{Name: name}
	w.repair() // The turn record is the only other place where the parent stands, so it is not replaced before.
	w.ref.Turn = Turn{Message: name, Parent: w.ref.Head, Index: w.ref.Length}
	w.commit(name)
	if !crash {
		w.repair()
	}
}

func (w *world) commit(name string) {
	w.ref.Head = name
	w.ref.Length++
	w.want = append(w.want, name)
}

func (w *world) repair() {
	n := w.nodes[w.ref.Turn.Message]
	if w.ref.Turn.Message != "" {
		w.nodes[n.Name] = w.ref.place(n)
	}
}

func (w *world) lookup(name string) (Node, bool) {
	n, ok := w.nodes[name]
	return n, ok
}

func TestNoCrashBetweenTheTwoWritesLosesTheChain(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &world{nodes: map[string]Node{}}
		for range 40 {
			w.step(random.IntN(3) == 0, random.IntN(2) == 0)
			chain, err := Walk(w.ref, w.lookup, nil)
			if err != nil || !slices.Equal(names(chain), w.want) {
				t.Fatalf("seed %d: got %v, %v, want %v", seed, names(chain), err, w.want)
			}
		}
		w.repair()
		w.ref.Turn = Turn{}
		if chain, err := Walk(w.ref, w.lookup, nil); err != nil || !slices.Equal(names(chain), w.want) {
			t.Fatalf("seed %d: once repaired, the messages alone say %v, %v, want %v", seed, names(chain), err, w.want)
		}
	}
}

func TestADamagedChainIsNeverTakenForAWholeOne(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		w := &world{nodes: map[string]Node{}}
		for range 12 {
			w.step(random.IntN(3) == 0, false)
		}
		victim := slices.Sorted(maps.Keys(w.nodes))[random.IntN(len(w.nodes))]
		n := w.nodes[victim]
		w.ref.Turn = Turn{}
		switch random.IntN(4) {
		case 0:
			delete(w.nodes, victim)
		case 1:
			n.Parent = w.ref.Head
			w.nodes[victim] = n
		case 2:
			n.Index++
			w.nodes[victim] = n
		case 3:
			w.ref.Length += int64(1 - 2*random.IntN(2))
		}
		if chain, err := Walk(w.ref, w.lookup, nil); err == nil {
			t.Fatalf("seed %d: %s was damaged, and %v was handed out", seed, victim, names(chain))
		}
	}
}
