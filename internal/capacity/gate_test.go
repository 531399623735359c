// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func chat(ns, name string, waited time.Duration) Chat {
	return Chat{Key: types.NamespacedName{Namespace: ns, Name: name}, Since: t0.Add(-waited)}
}

func sub(c Chat) Chat {
	c.Sub = true
	return c
}

func TestPlacesAreLimitedInANamespaceAndInAllAndApartForSubChats(t *testing.T) {
	g := NewGate(Limits{Chats: 3, SubChats: 1}, Limits{Chats: 2, SubChats: 1})
	for _, c := range []struct {
		chat Chat
		want bool
	}{
		{chat("a", "1", 0), true},
		{chat("a", "2", 0), true},
		{chat("a", "1", 0), true},       // It has a place.
		{chat("a", "3", 0), false},      // The namespace is full.
		{chat("b", "1", 0), true},       //
		{chat("b", "2", 0), false},      // All of them are full.
		{sub(chat("b", "3", 0)), true},  // Sub-chats count apart.
		{sub(chat("a", "4", 0)), false}, //
	} {
		if got := g.Enter(c.chat); got != c.want {
			t.Errorf("%s enters: %v", c.chat.Key, got)
		}
	}
}

func TestAFreePlaceGoesToTheNamespaceWithTheFewestThenToWhoWaitedLongest(t *testing.T) {
	g := NewGate(Limits{Chats: 3}, Limits{Chats: 3})
	for _, c := range []Chat{chat("a", "1", 0), chat("a", "2", 0), chat("b", "1", 0)} {
		if !g.Enter(c) {
			t.Fatalf("%s has no place", c.Key)
		}
	}
	waiting := []Chat{chat("a", "old", time.Hour), chat("b", "new", time.Second), chat("b", "newer", 0)}
	for _, c := range waiting {
		g.Wait(c)
	}
	if next := g.Next(); len(next) != 0 {
		t.Errorf("%v are woken though no place is free", next)
	}
	g.Leave(types.NamespacedName{Namespace: "a", Name: "1"})
	for _, want := range []string{"a/old", "b/new", "b/newer"} {
		next := g.Next()
		if len(next) != 1 {
			t.Fatalf("%v are woken", next)
		}
		// With a place for each namespace the one with fewer comes first; between equals the one that waited longest.
		for _, c := range waiting {
			if entered := g.Enter(c); entered != (c.Key.String() == next[0].String()) {
				t.Errorf("%s enters though %s is next: %v", c.Key, next[0], entered)
			}
		}
		if next[0].String() != want {
			t.Errorf("next is %s, want %s", next[0], want)
		}
		g.Leave(next[0])
	}
	if g.Enter(chat("c", "stranger", 0)); len(g.Next()) != 0 {
		t.Error("somebody waits still")
	}
}

func TestNobodyOvertakesThoseWhoWait(t *testing.T) {
	g := NewGate(Limits{Chats: 1}, Limits{Chats: 1})
	g.Hold(chat("a", "1", 0))
	g.Wait(chat("a", "2", time.Hour))
	g.Leave(types.NamespacedName{Namespace: "a", Name: "1"})
	if g.Enter(chat("a", "3", 0)) {
		t.Error("a newcomer overtakes")
	}
	if !g.Enter(chat("a", "2", time.Hour)) {
		t.Error("who waited longest has no place")
	}
}
