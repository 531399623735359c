// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// state of a chat, as its status says it.
type state struct {
	generates bool
	// since is since when it waits; zero: it does not.
	since time.Time
}

// told is what a gate is yet to be told of a chat elsewhere.
type told struct {
	key   types.NamespacedName
	state state
}

// gates are several, each with chats of its own. What becomes of those it learns at once, and of the others' later.
type gates struct {
	t      *testing.T
	gates  []*Gate
	random *rand.Rand
	limit  int
	states map[types.NamespacedName]state
	// underway is what each gate is yet to be told, in order.
	underway [][]told
	now      time.Time
}

func newGates(t *testing.T, n, limit int, random *rand.Rand) *gates {
	t.Helper()
	w := &gates{t: t, random: random, limit: limit, states: map[types.NamespacedName]state{},
		underway: make([][]told, n), now: t0}
	for range n {
		w.gates = append(w.gates, newGate(int32(limit), 1000))
	}
	return w
}

// home is the gate that lets in the chats of the namespace.
func (w *gates) home(key types.NamespacedName) int { return int(key.Namespace[2]-'0') % len(w.gates) }

// enter lets the chat in, or has it wait, as its gate says.
func (w *gates) enter(key types.NamespacedName) {
	gate, next := w.gates[w.home(key)], w.states[key]
	chat := Chat{Key: key, Since: next.since}
	if gate.Enter(chat) == nil {
		gate.Hold(chat)
		next = state{generates: true}
	} else {
		if next.generates || next.since.IsZero() {
			w.now = w.now.Add(time.Microsecond)
			next = state{since: w.now}
		}
		chat.Since = next.since
		gate.Wait(chat)
	}
	w.write(key, next)
}

// leave ends the chat's turn.
func (w *gates) leave(key types.NamespacedName) {
	w.gates[w.home(key)].Leave(key)
	w.write(key, state{})
}

// write changes the chat's status, of which the other gates learn in time.
func (w *gates) write(key types.NamespacedName, next state) {
	if w.states[key] == next {
		return
	}
	w.states[key] = next
	for i := range w.gates {
		if i != w.home(key) {
			w.underway[i] = append(w.underway[i], told{key, next})
		}
	}
}

// tell tells a gate the next thing, and reports whether there was any.
func (w *gates) tell(i int) bool {
	if len(w.underway[i]) == 0 {
		return false
	}
	next := w.underway[i][0]
	w.underway[i] = w.underway[i][1:]
	chat := Chat{Key: next.key, Since: next.state.since, Elsewhere: true}
	switch {
	case next.state.generates:
		w.gates[i].Hold(chat)
	case !next.state.since.IsZero():
		w.gates[i].Wait(chat)
	default:
		w.gates[i].Leave(chat.Key)
	}
	return true
}

// requeue reconciles the chats that a gate calls, and reports whether there were any.
func (w *gates) requeue(i int) (any bool) {
	for _, name := range called(w.gates[i]) {
		key := types.NamespacedName{Namespace: name[:3], Name: name[4:]}
		if w.home(key) != i {
			w.t.Fatalf("gate %d calls %s", i, name)
		}
		if any = true; !w.states[key].since.IsZero() {
			w.enter(key)
		}
	}
	return any
}

// generating are the chats that generate.
func (w *gates) generating() (keys []types.NamespacedName) {
	for key, s := range w.states {
		if s.generates {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	})
	return keys
}

func (w *gates) waiting() (n int) {
	for _, s := range w.states {
		if !s.since.IsZero() {
			n++
		}
	}
	return n
}

// settle tells everybody everything.
func (w *gates) settle() {
	for again := true; again; {
		again = false
		for i := range w.gates {
			again = w.requeue(i) || w.tell(i) || again
		}
	}
}

// act lets one thing happen.
func (w *gates) act() {
	key := types.NamespacedName{Namespace: fmt.Sprint("ns", w.random.IntN(6)), Name: fmt.Sprint(w.random.IntN(5))}
	i := w.random.IntN(len(w.gates))
	switch s := w.states[key]; w.random.IntN(5) {
	case 0: // It has something to do, or a step ends and the next one begins.
		w.enter(key)
	case 1:
		if s.generates || w.random.IntN(4) == 0 { // Somebody may also stop it while it waits.
			w.leave(key)
		}
	case 2:
		w.requeue(i)
	default:
		w.tell(i)
	}
}

// TestSeveralGatesKeepOneLimitAndStarveNobody lets gates learn late of what the others do. Once they know, and every
// step that was under way has ended, no more generate than may, and nobody waits while fewer do.
func TestSeveralGatesKeepOneLimitAndStarveNobody(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(7, seed))
		w := newGates(t, 2+random.IntN(3), 1+random.IntN(5), random)
		for range 20 {
			for range 30 {
				w.act()
			}
			w.settle()
			for _, key := range w.generating() { // Each comes to its next step.
				w.enter(key)
				w.settle()
			}
			n, waiting := len(w.generating()), w.waiting()
			if n > w.limit || n < w.limit && waiting > 0 {
				t.Fatalf("seed %d: of %d that may %d generate, and %d wait", seed, w.limit, n, waiting)
			}
			for i, g := range w.gates {
				if problem := audit(g); problem != "" {
					t.Fatalf("seed %d: gate %d: %s", seed, i, problem)
				}
			}
		}
	}
}

// TestMultipleGatesAdmitLongestWaitingChat: each namespace has one that waits, so that none comes first
// for the number of its chats.
func TestMultipleGatesAdmitLongestWaitingChat(t *testing.T) {
	w := newGates(t, 3, 1, rand.New(rand.NewPCG(7, 7)))
	var order []types.NamespacedName
	for _, ns := range []string{"ns4", "ns0", "ns5", "ns1", "ns3", "ns2"} {
		key := types.NamespacedName{Namespace: ns, Name: "chat"}
		order = append(order, key)
		w.enter(key)
		w.settle()
	}
	for i, key := range order {
		if got := w.generating(); !slices.Equal(got, []types.NamespacedName{key}) {
			t.Fatalf("%v generate, and it is the turn of number %d, %s", got, i, key)
		}
		w.leave(key)
		w.settle()
	}
}

// TestGaugesCountWhatIsElsewhereThere: the sum over all gates is the number of chats.
func TestGaugesCountWhatIsElsewhereThere(t *testing.T) {
	w := newGates(t, 2, 3, rand.New(rand.NewPCG(7, 8)))
	for i := range 6 {
		w.enter(types.NamespacedName{Namespace: fmt.Sprint("ns", i), Name: "chat"})
		w.settle()
	}
	var sum [2]int
	for _, g := range w.gates {
		generating, waiting := g.Counts()
		sum[0] += generating.Chats
		sum[1] += waiting.Chats
	}
	if sum != [2]int{3, 3} {
		t.Errorf("%d generate and %d wait, want 3 each", sum[0], sum[1])
	}
}
