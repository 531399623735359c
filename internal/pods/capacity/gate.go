// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity bounds how many chats generate at once, in each namespace and in all of them, roots and sub-chats
// counted apart, and hands free slots out in a fair order: first to the namespace that has the fewest, then to the chat
// that has waited longest. It touches no cluster: callers tell it who generates, who waits, and what the quotas say.
//
// The invariant that it keeps: whoever waits has no slot that is free. A slot that becomes free belongs at once to the
// chat that is next, so that a newcomer overtakes nobody by being quick.
//
// Several gates, each with chats of its own, keep one limit for all of them together if each is told of the others'
// chats, too: who is next follows from what they know, so that those who know the same let in the same.
package capacity

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Chat is a chat, as far as slots go.
type Chat struct {
	Key types.NamespacedName
	// Sub is true for a chat that has a parent.
	Sub bool
	// Since is since when it waits; zero when it has not waited yet.
	Since time.Time
	// Elsewhere is true for a chat that another process lets in. It counts, and it has its turn among those that wait: a
	// slot that is free for it is kept free. It is never requeued.
	Elsewhere bool
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

// Gate is the account of who has a slot and who waits for one. It lives in memory only: a new process fills it from
// what the quotas and the chats' statuses say.
type Gate struct {
	mu         sync.Mutex
	cluster    ClusterLimits
	namespaces map[string]*namespace
	slots      map[types.NamespacedName]*slot
	// generating counts slots that chats have, or that are kept free for one.
	generating Counts
	// kept are the slots that are kept free for chats that wait elsewhere.
	kept map[types.NamespacedName]*slot
	// backlogged are the namespaces in which chats wait, roots first, then sub-chats.
	backlogged [2]map[string]*namespace
	// pending are the chats that Requeue has yet to hand out.
	pending []types.NamespacedName
	// signal is sent to when pending is no longer empty.
	signal chan struct{}
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
		cluster: OfCluster(nil), namespaces: map[string]*namespace{}, slots: map[types.NamespacedName]*slot{},
		kept: map[types.NamespacedName]*slot{}, backlogged: [2]map[string]*namespace{{}, {}}, signal: make(chan struct{}, 1),
	}
}

// SetCluster sets the limits of all namespaces together, and of each that has none of its own.
// Nobody's step is cut off.
func (g *Gate) SetCluster(limits ClusterLimits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cluster == limits {
		return
	}
	g.cluster = limits
	g.admitWaiting()
	for sub := range g.backlogged {
		for _, n := range g.backlogged[sub] {
			g.enqueueAll(n.queues[sub])
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
	g.admitWaiting()
	g.enqueueAll(n.queues[0])
	g.enqueueAll(n.queues[1])
}

// enqueueAll requeues those who still wait: what holds them may have changed, and their status says what.
func (g *Gate) enqueueAll(waiting queue) {
	for _, p := range slices.SortedFunc(slices.Values(waiting), func(a, b *slot) int { return a.Since.Compare(b.Since) }) {
		g.enqueue(p)
	}
}

func (g *Gate) enqueue(p *slot) {
	if p.Elsewhere {
		return
	}
	g.pending = append(g.pending, p.Key)
	select {
	case g.signal <- struct{}{}:
	default: // It was sent already.
	}
}

// Requeue waits for chats to reconcile: those that were given a slot, in the order in which they were, and those that
// wait for another reason than before. It returns nil when the context ends.
func (g *Gate) Requeue(ctx context.Context) []types.NamespacedName {
	select {
	case <-ctx.Done():
		return nil
	case <-g.signal:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	pending := g.pending
	g.pending = nil
	return pending
}

// Hold records that the chat has a slot, whatever the limits say.
func (g *Gate) Hold(chat Chat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.slots[chat.Key]; p != nil && p.index == generates && p.Sub == chat.Sub && g.kept[chat.Key] == nil {
		return
	}
	g.remove(chat.Key)
	g.hold(&slot{Chat: chat})
	g.admitWaiting()
}

// Wait records that the chats wait. Those for which there is a slot are given it and requeued, once all are recorded:
// whom a new process reads first must not come before who has waited longer.
func (g *Gate) Wait(chats ...Chat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, chat := range chats {
		g.remove(chat.Key)
		g.wait(&slot{Chat: chat})
	}
	g.admitWaiting()
}

// Leave records that the chat neither has nor wants a slot.
func (g *Gate) Leave(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.remove(key) {
		g.admitWaiting()
	}
}

// Enter gives the chat a slot for its next step if it has none and there is one. Else it says what holds it: that is
// also said to a chat that has a slot while more generate than may, since a limit was lowered. The caller says
// afterwards, with Hold, Wait or Leave, what became of that.
func (g *Gate) Enter(chat Chat) *Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.slots[chat.Key]
	n := g.namespaceOf(chat.Key.Namespace)
	if p != nil && p.index == generates && p.Sub == chat.Sub {
		return g.heldBy(chat.Key.Namespace, n, chat.Sub, 1)
	}
	defer g.forgetEmpty(chat.Key.Namespace)
	if held := g.heldBy(chat.Key.Namespace, n, chat.Sub, 0); held != nil {
		return held
	}
	again := g.remove(chat.Key)
	g.hold(&slot{Chat: chat})
	if again { // It may have left a slot of the other sort.
		g.admitWaiting()
	}
	return nil
}

// Counts are how many chats generate, and how many wait for a slot, without those elsewhere.
func (g *Gate) Counts() (generating, waiting Counts) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.slots {
		switch {
		case p.Elsewhere:
		case p.index == generates:
			*generating.of(p.Sub)++
		default:
			*waiting.of(p.Sub)++
		}
	}
	return generating, waiting
}

// Limits are those for all namespaces together.
func (g *Gate) Limits() Limits {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cluster.All
}
