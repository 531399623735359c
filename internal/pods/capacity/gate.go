// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity limits how many chats generate at once, in each namespace and in all of them, with separate counts
// of roots and sub-chats. It gives free slots in a fair order: first to the namespace with the fewest, then to the chat
// that has waited longest. It uses no client: callers report who generates, who waits, and the quotas.
//
// The invariant: while a chat waits, no slot is free for it. A slot that becomes free belongs at once to the next chat,
// so that no newcomer overtakes it.
//
// Several gates, each with its own chats, keep one limit together if each also knows the chats of the others: the order
// follows from what they know, so gates that know the same admit the same.
package capacity

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Chat is a chat that has a slot or waits for one.
type Chat struct {
	Key types.NamespacedName
	// Sub is true for a chat that has a parent.
	Sub bool
	// Since is when it began to wait; zero when it has not waited yet.
	Since time.Time
	// Elsewhere is true for a chat that another process admits. It counts, and has its turn among those that wait: a slot
	// that is free for it is kept free. It is never requeued.
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

// Gate records which chats have a slot and which wait for one. It is in memory only: a new process fills it from the
// quotas and the chats' statuses.
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
	// pending are the chats that Requeue returns next.
	pending []types.NamespacedName
	// signal has a value while pending is not empty.
	signal chan struct{}
}

// namespace is what the gate knows of one.
type namespace struct {
	own        Limits
	generating Counts
	// waiting are roots, and sub-chats, in their order.
	waiting [2][]*slot
}

// NewGate returns a gate with the limits that count without any quota.
func NewGate() *Gate {
	return &Gate{
		cluster: OfCluster(nil), namespaces: map[string]*namespace{}, slots: map[types.NamespacedName]*slot{},
		kept: map[types.NamespacedName]*slot{}, backlogged: [2]map[string]*namespace{{}, {}}, signal: make(chan struct{}, 1),
	}
}

// SetCluster sets the limits of all namespaces together, and of each that has no own limits. Steps under way continue.
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
			g.enqueueAll(n.waiting[sub])
		}
	}
}

// SetNamespace sets the limits of the namespace's own quotas. Steps under way continue.
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
	g.enqueueAll(n.waiting[0])
	g.enqueueAll(n.waiting[1])
}

// enqueueAll requeues chats that still wait: their status names the limit, which may have changed.
func (g *Gate) enqueueAll(waiting []*slot) {
	for _, p := range waiting {
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
	default: // It has a value already.
	}
}

// Requeue waits for chats to reconcile: those that got a slot, in this order, and those that wait for another reason
// than before. It returns nil when the context ends.
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

// Hold records that the chat has a slot, whatever the limits are.
func (g *Gate) Hold(chat Chat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.slots[chat.Key]; p != nil && !p.waits && p.Sub == chat.Sub && g.kept[chat.Key] == nil {
		return
	}
	g.remove(chat.Key)
	g.hold(&slot{Chat: chat})
	g.admitWaiting()
}

// Wait records that the chats wait. Once all are recorded, those for which there is a slot get it and are requeued: the
// order in which a new process reads chats does not matter.
func (g *Gate) Wait(chats ...Chat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, chat := range chats {
		g.remove(chat.Key)
		g.wait(&slot{Chat: chat})
	}
	g.admitWaiting()
}

// Leave records that the chat neither has a slot nor waits for one.
func (g *Gate) Leave(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.remove(key) {
		g.admitWaiting()
	}
}

// Enter returns nil if the chat has a slot for its next step or gets a free one, else the limit that holds it. A chat
// that has a slot is held, too, while more generate than a lowered limit allows. The caller must follow with Hold, Wait
// or Leave.
func (g *Gate) Enter(chat Chat) *Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.slots[chat.Key]
	n := g.namespaceOf(chat.Key.Namespace)
	if p != nil && !p.waits && p.Sub == chat.Sub {
		return g.heldBy(chat.Key.Namespace, n, chat.Sub, 1)
	}
	defer g.forgetEmpty(chat.Key.Namespace)
	if held := g.heldBy(chat.Key.Namespace, n, chat.Sub, 0); held != nil {
		return held
	}
	removed := g.remove(chat.Key)
	g.hold(&slot{Chat: chat})
	if removed { // It may have left a slot of the other sort.
		g.admitWaiting()
	}
	return nil
}

// Counts returns how many chats generate, and how many wait for a slot, without those elsewhere.
func (g *Gate) Counts() (generating, waiting Counts) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.slots {
		switch {
		case p.Elsewhere:
		case !p.waits:
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
