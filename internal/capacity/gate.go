// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity bounds how many chats generate at once, in each namespace and in all of them, roots and sub-chats counted
// apart, and gives free places out in a fair order: first to the namespace that has the fewest, then to the chat that has
// waited longest. It touches no cluster: callers tell it who generates and who waits.
package capacity

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Limits is how many chats may generate at once.
type Limits struct {
	// Chats without a parent, and SubChats.
	Chats, SubChats int
}

// Defaults for all namespaces together, and for each.
var (
	DefaultCluster   = Limits{Chats: 2000, SubChats: 4000}
	DefaultNamespace = Limits{Chats: 500, SubChats: 1000}
)

func (l Limits) of(sub bool) int {
	if sub {
		return l.SubChats
	}
	return l.Chats
}

// Chat is a chat, as far as places go.
type Chat struct {
	Key types.NamespacedName
	// Sub is true for a chat that has a parent.
	Sub bool
	// Since is since when it waits; zero when it has not waited yet.
	Since time.Time
}

// Gate is the account of who has a place and who waits for one. It lives in memory only: a new process fills it from what
// the chats' statuses say.
type Gate struct {
	cluster, namespace Limits

	mu      sync.Mutex
	holding map[types.NamespacedName]Chat
	waiting map[types.NamespacedName]Chat
}

// NewGate returns an empty account.
func NewGate(cluster, namespace Limits) *Gate {
	return &Gate{
		cluster: cluster, namespace: namespace,
		holding: map[types.NamespacedName]Chat{}, waiting: map[types.NamespacedName]Chat{},
	}
}

// Hold records that the chat has a place, whatever the limits say.
func (g *Gate) Hold(chat Chat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold(chat)
}

func (g *Gate) hold(chat Chat) {
	g.holding[chat.Key] = chat
	delete(g.waiting, chat.Key)
}

// Wait records that the chat waits.
func (g *Gate) Wait(chat Chat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.holding, chat.Key)
	g.waiting[chat.Key] = chat
}

// Leave records that the chat neither has nor wants a place.
func (g *Gate) Leave(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.holding, key)
	delete(g.waiting, key)
}

// Enter gives the chat a place if it may generate: it does already, or there is a place and nobody comes before it. The
// caller says afterwards, with Hold, Wait or Leave, what became of that.
func (g *Gate) Enter(chat Chat) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.holding[chat.Key]; ok {
		return true
	}
	if !g.fits(chat, g.used(chat.Sub)) {
		return false
	}
	if next, ok := g.next(chat.Sub); ok && next.Key != chat.Key {
		return false
	}
	g.hold(chat)
	return true
}

// Next are the chats to wake, a root and a sub-chat at most: each has a place and waits for it.
func (g *Gate) Next() (keys []types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, sub := range []bool{false, true} {
		if chat, ok := g.next(sub); ok {
			keys = append(keys, chat.Key)
		}
	}
	return keys
}

// used counts the places that are taken, in all namespaces under the empty name.
func (g *Gate) used(sub bool) map[string]int {
	n := map[string]int{}
	for _, chat := range g.holding {
		if chat.Sub == sub {
			n[""]++
			n[chat.Key.Namespace]++
		}
	}
	return n
}

func (g *Gate) fits(chat Chat, used map[string]int) bool {
	return used[""] < g.cluster.of(chat.Sub) && used[chat.Key.Namespace] < g.namespace.of(chat.Sub)
}

// next is the waiting chat that comes first among those that have a place. The caller holds mu.
func (g *Gate) next(sub bool) (best Chat, ok bool) {
	if len(g.waiting) == 0 {
		return best, false
	}
	used := g.used(sub)
	for _, chat := range g.waiting {
		if chat.Sub == sub && g.fits(chat, used) && (!ok || before(chat, best, used)) {
			best, ok = chat, true
		}
	}
	return best, ok
}

func before(a, b Chat, used map[string]int) bool {
	if x, y := used[a.Key.Namespace], used[b.Key.Namespace]; x != y {
		return x < y
	}
	if !a.Since.Equal(b.Since) {
		return a.Since.Before(b.Since)
	}
	return a.Key.String() < b.Key.String()
}
