// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity bounds how many chats generate at once, in each namespace and in all of them, roots and sub-chats counted
// apart, and gives free places out in a fair order: first to the namespace that has the fewest, then to the chat that has
// waited longest. It touches no cluster: callers tell it who generates, who waits, and what the quotas say.
//
// The invariant that it keeps: whoever waits has no place that is free. A place that becomes free belongs at once to the chat
// that is next, so that a newcomer overtakes nobody by being quick.
package capacity

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Chat is a chat, as far as places go.
type Chat struct {
	Key types.NamespacedName
	// Sub is true for a chat that has a parent.
	Sub bool
	// Since is since when it waits; zero when it has not waited yet.
	Since time.Time
}

// Counts of chats without a parent, and of sub-chats.
type Counts struct {
	Chats, SubChats int
}

func (c *Counts) of(sub bool) *int {
	if sub {
		return &c.SubChats
	}
	return &c.Chats
}

// Gate is the account of who has a place and who waits for one. It lives in memory only: a new process fills it from what
// the quotas and the chats' statuses say.
type Gate struct {
	mu         sync.Mutex
	cluster    ClusterLimits
	namespaces map[string]*namespace
	places     map[types.NamespacedName]*place
	// generating and waiting count places.
	generating, waiting Counts
	// crowded are the namespaces in which chats wait, roots first, then sub-chats.
	crowded [2]map[string]*namespace
	// called are the chats that Called has yet to hand out.
	called []types.NamespacedName
	// bell rings when called is no longer empty.
	bell chan struct{}
}

// namespace is what the gate knows of one.
type namespace struct {
	own        Limits
	generating Counts
	// queues of roots and of sub-chats.
	queues [2]queue
}

// NewGate returns an empty account with the limits that count without any quota.
func NewGate() *Gate {
	return &Gate{
		cluster: OfCluster(nil), namespaces: map[string]*namespace{}, places: map[types.NamespacedName]*place{},
		crowded: [2]map[string]*namespace{{}, {}}, bell: make(chan struct{}, 1),
	}
}

// SetCluster sets the limits of all namespaces together, and of each that has none of its own. Nobody's step is cut off.
func (g *Gate) SetCluster(limits ClusterLimits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cluster == limits {
		return
	}
	g.cluster = limits
	g.giveOut()
	for sub := range g.crowded {
		for _, n := range g.crowded[sub] {
			g.callAll(n.queues[sub])
		}
	}
}

// SetNamespace sets the limits that the namespace's own quotas say. Nobody's step is cut off.
func (g *Gate) SetNamespace(name string, own Limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.namespaceOf(name)
	defer g.forgetEmpty(name)
	if n.own == own {
		return
	}
	n.own = own
	g.giveOut()
	g.callAll(n.queues[0])
	g.callAll(n.queues[1])
}

// callAll calls those who go on waiting: what holds them may have changed, and they say so.
func (g *Gate) callAll(waiting queue) {
	for _, p := range slices.SortedFunc(slices.Values(waiting), func(a, b *place) int { return a.Since.Compare(b.Since) }) {
		g.call(p.Key)
	}
}

func (g *Gate) call(key types.NamespacedName) {
	g.called = append(g.called, key)
	select {
	case g.bell <- struct{}{}:
	default: // It rings already.
	}
}

// Called waits for chats to look at: those that were given a place, in the order in which they were, and those that wait for
// another reason than before. It returns nil when the context ends.
func (g *Gate) Called(ctx context.Context) []types.NamespacedName {
	select {
	case <-ctx.Done():
		return nil
	case <-g.bell:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	called := g.called
	g.called = nil
	return called
}

// Hold records that the chat has a place, whatever the limits say.
func (g *Gate) Hold(chat Chat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.places[chat.Key]; p != nil && p.index == generates && p.Sub == chat.Sub {
		return
	}
	g.remove(chat.Key)
	g.hold(&place{Chat: chat})
	g.giveOut()
}

// Wait records that the chat waits. If there is a place for it, it is given that and called.
func (g *Gate) Wait(chat Chat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(chat.Key)
	p, n := &place{Chat: chat}, g.namespaceOf(chat.Key.Namespace)
	g.places[chat.Key] = p
	heap.Push(&n.queues[sortOf(chat.Sub)], p)
	g.crowded[sortOf(chat.Sub)][chat.Key.Namespace] = n
	*g.waiting.of(chat.Sub)++
	g.giveOut()
}

// Leave records that the chat neither has nor wants a place.
func (g *Gate) Leave(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.remove(key) {
		g.giveOut()
	}
}

// Enter gives the chat a place for its next step if it has none and there is one. Else it says what holds it: that is also
// said to a chat that has a place while more generate than may, since a limit was lowered. The caller says afterwards, with
// Hold, Wait or Leave, what became of that.
func (g *Gate) Enter(chat Chat) *Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.places[chat.Key]
	n := g.namespaceOf(chat.Key.Namespace)
	if p != nil && p.index == generates && p.Sub == chat.Sub {
		return g.heldBy(chat.Key.Namespace, n, chat.Sub, 1)
	}
	defer g.forgetEmpty(chat.Key.Namespace)
	if held := g.heldBy(chat.Key.Namespace, n, chat.Sub, 0); held != nil {
		return held
	}
	g.remove(chat.Key)
	g.hold(&place{Chat: chat})
	return nil
}

// Counts are how many chats generate, and how many wait for a place, in all namespaces.
func (g *Gate) Counts() (generating, waiting Counts) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.generating, g.waiting
}

// Limits are those for all namespaces together.
func (g *Gate) Limits() Limits {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cluster.All
}

// giveOut gives free places to those who wait, and calls them. The caller holds mu, here and below.
func (g *Gate) giveOut() {
	for sub, crowded := range g.crowded {
		for len(crowded) > 0 {
			n := g.next(sub == 1)
			if n == nil {
				break
			}
			p := n.queues[sub][0]
			g.remove(p.Key)
			g.hold(p)
			g.call(p.Key)
		}
	}
}

// next is the namespace whose first waiting chat is to get a place; nil if there is no place for any.
func (g *Gate) next(sub bool) (best *namespace) {
	if *g.generating.of(sub) >= int(g.cluster.All.of(sub).Max) {
		return nil
	}
	i := sortOf(sub)
	for _, n := range g.crowded[i] {
		if own, _ := g.limitOf(n, sub); *n.generating.of(sub) >= int(own.Max) {
			continue
		}
		if best == nil {
			best = n
			continue
		}
		if x, y := *n.generating.of(sub), *best.generating.of(sub); x < y || x == y && n.queues[i][0].before(best.queues[i][0]) {
			best = n
		}
	}
	return best
}

// heldBy is what keeps a chat of the namespace from generating; nil if there is a place for it. has is 1 for a chat that is
// counted already, else 0. The limit that is the nearest to the chat comes first.
func (g *Gate) heldBy(name string, n *namespace, sub bool, has int) *Held {
	limit, scope := g.limitOf(n, sub)
	if *n.generating.of(sub)-has >= int(limit.Max) {
		return &Held{Limit: limit, Scope: scope, Namespace: name, Sub: sub}
	}
	if all := g.cluster.All.of(sub); *g.generating.of(sub)-has >= int(all.Max) {
		return &Held{Limit: all, Scope: AllNamespaces, Namespace: name, Sub: sub}
	}
	return nil
}

// limitOf is what counts for the namespace by itself.
func (g *Gate) limitOf(n *namespace, sub bool) (Limit, Scope) {
	if own := n.own.of(sub); own.Quota != "" {
		return own, OwnNamespace
	}
	return g.cluster.Namespace.of(sub), EachNamespace
}

func (g *Gate) hold(p *place) {
	p.index = generates
	g.places[p.Key] = p
	*g.namespaceOf(p.Key.Namespace).generating.of(p.Sub)++
	*g.generating.of(p.Sub)++
}

// remove takes the chat out of the account, and tells whether it was in it.
func (g *Gate) remove(key types.NamespacedName) bool {
	p := g.places[key]
	if p == nil {
		return false
	}
	delete(g.places, key)
	n, i := g.namespaceOf(key.Namespace), sortOf(p.Sub)
	if p.index == generates {
		*n.generating.of(p.Sub)--
		*g.generating.of(p.Sub)--
	} else {
		heap.Remove(&n.queues[i], p.index)
		*g.waiting.of(p.Sub)--
		if len(n.queues[i]) == 0 {
			delete(g.crowded[i], key.Namespace)
		}
	}
	g.forgetEmpty(key.Namespace)
	return true
}

func (g *Gate) namespaceOf(name string) *namespace {
	n := g.namespaces[name]
	if n == nil {
		n = &namespace{}
		g.namespaces[name] = n
	}
	return n
}

// forgetEmpty keeps the account from growing with every namespace that there ever was.
func (g *Gate) forgetEmpty(name string) {
	n := g.namespaces[name]
	if n != nil && n.own == (Limits{}) && n.generating == (Counts{}) && len(n.queues[0]) == 0 && len(n.queues[1]) == 0 {
		delete(g.namespaces, name)
	}
}

// sortOf is where roots, and where sub-chats are in a pair.
func sortOf(sub bool) int {
	if sub {
		return 1
	}
	return 0
}
