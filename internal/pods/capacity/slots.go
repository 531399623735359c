// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"container/heap"

	"k8s.io/apimachinery/pkg/types"
)

// admitWaiting hands free slots to waiting chats and requeues them. The caller holds mu, here and in all of this file.
// Those for chats elsewhere are kept free until something changes: who is next is then found out anew, because whoever
// lets that chat in may have known something else.
func (g *Gate) admitWaiting() {
	for key, p := range g.kept {
		g.remove(key)
		g.wait(p)
	}
	for sub, backlogged := range g.backlogged {
		for len(backlogged) > 0 {
			n := g.next(sub == 1)
			if n == nil {
				break
			}
			p := n.queues[sub][0]
			g.remove(p.Key)
			g.hold(p)
			g.enqueue(p)
			if p.Elsewhere {
				g.kept[p.Key] = p
			}
		}
	}
}

// next is the namespace whose first waiting chat is to get a slot; nil if there is no slot for any.
func (g *Gate) next(sub bool) (best *namespace) {
	if *g.generating.of(sub) >= int(g.cluster.All.of(sub).Max) {
		return nil
	}
	i := sortOf(sub)
	for _, n := range g.backlogged[i] {
		if own, _ := g.limitOf(n, sub); *n.generating.of(sub) >= int(own.Max) {
			continue
		}
		if best == nil {
			best = n
			continue
		}
		if x, y := *n.generating.of(sub), *best.generating.of(sub); x < y || x == y &&
			n.queues[i][0].before(best.queues[i][0]) {
			best = n
		}
	}
	return best
}

// heldBy is what keeps a chat of the namespace from generating; nil if there is a slot for it. has is 1 for a chat that
// is counted already, else 0. The limit that is the nearest to the chat comes first.
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

func (g *Gate) hold(p *slot) {
	p.index = generates
	g.slots[p.Key] = p
	*g.namespaceOf(p.Key.Namespace).generating.of(p.Sub)++
	*g.generating.of(p.Sub)++
}

func (g *Gate) wait(p *slot) {
	n, i := g.namespaceOf(p.Key.Namespace), sortOf(p.Sub)
	g.slots[p.Key] = p
	heap.Push(&n.queues[i], p)
	g.backlogged[i][p.Key.Namespace] = n
}

// remove takes the chat out of the account, and reports whether it was in it.
func (g *Gate) remove(key types.NamespacedName) bool {
	p := g.slots[key]
	if p == nil {
		return false
	}
	delete(g.slots, key)
	delete(g.kept, key)
	n, i := g.namespaceOf(key.Namespace), sortOf(p.Sub)
	if p.index == generates {
		*n.generating.of(p.Sub)--
		*g.generating.of(p.Sub)--
	} else {
		heap.Remove(&n.queues[i], p.index)
		if len(n.queues[i]) == 0 {
			delete(g.backlogged[i], key.Namespace)
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
