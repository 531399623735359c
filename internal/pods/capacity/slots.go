// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// slot of a chat: one that it has, or one that it waits for.
type slot struct {
	Chat
	waits bool
}

// compare orders the chats that wait for a slot.
func (p *slot) compare(other *slot) int {
	if c := p.Since.Compare(other.Since); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(p.Key.Namespace, other.Key.Namespace), cmp.Compare(p.Key.Name, other.Key.Name))
}

// position is where a waiting chat is, or belongs, in the order.
func (n *namespace) position(p *slot) int {
	i, _ := slices.BinarySearchFunc(n.waiting[sortOf(p.Sub)], p, (*slot).compare)
	return i
}

// admitWaiting gives free slots to waiting chats and requeues them. The caller holds mu, here and in all of this file.
// Slots for chats elsewhere are kept free until the next change. Then the order is found again, because the gate that
// admits that chat may have known something else.
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
			p := n.waiting[sub][0]
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
		if best == nil || n.precedes(best, sub) {
			best = n
		}
	}
	return best
}

// precedes reports whether the namespace's first waiting chat comes before that of the other namespace.
func (n *namespace) precedes(other *namespace, sub bool) bool {
	x, y, i := *n.generating.of(sub), *other.generating.of(sub), sortOf(sub)
	return x < y || x == y && n.waiting[i][0].compare(other.waiting[i][0]) < 0
}

// heldBy is the limit that keeps a chat of the namespace from generating; nil if there is a slot for it. has is 1 for a
// chat that is counted already, else 0. The namespace's limit comes first.
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

// limitOf is the limit of the namespace alone.
func (g *Gate) limitOf(n *namespace, sub bool) (Limit, Scope) {
	if own := n.own.of(sub); own.Quota != "" {
		return own, OwnNamespace
	}
	return g.cluster.Namespace.of(sub), EachNamespace
}

func (g *Gate) hold(p *slot) {
	p.waits = false
	g.slots[p.Key] = p
	*g.namespaceOf(p.Key.Namespace).generating.of(p.Sub)++
	*g.generating.of(p.Sub)++
}

func (g *Gate) wait(p *slot) {
	n, i := g.namespaceOf(p.Key.Namespace), sortOf(p.Sub)
	p.waits, g.slots[p.Key] = true, p
	n.waiting[i] = slices.Insert(n.waiting[i], n.position(p), p)
	g.backlogged[i][p.Key.Namespace] = n
}

// remove drops the chat, and reports whether the gate knew it.
func (g *Gate) remove(key types.NamespacedName) bool {
	p := g.slots[key]
	if p == nil {
		return false
	}
	delete(g.slots, key)
	delete(g.kept, key)
	n, i := g.namespaceOf(key.Namespace), sortOf(p.Sub)
	if !p.waits {
		*n.generating.of(p.Sub)--
		*g.generating.of(p.Sub)--
	} else {
		at := n.position(p)
		n.waiting[i] = slices.Delete(n.waiting[i], at, at+1)
		if len(n.waiting[i]) == 0 {
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

// forgetEmpty drops a namespace of which nothing is known.
func (g *Gate) forgetEmpty(name string) {
	n := g.namespaces[name]
	if n != nil && n.own == (Limits{}) && n.generating == (Counts{}) && len(n.waiting[0])+len(n.waiting[1]) == 0 {
		delete(g.namespaces, name)
	}
}

// sortOf is the index of roots, and of sub-chats, in a pair.
func sortOf(sub bool) int {
	if sub {
		return 1
	}
	return 0
}
