// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/test/kit/check"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func chat(ns, name string, waited time.Duration) Chat {
	return Chat{Key: types.NamespacedName{Namespace: ns, Name: name}, Since: t0.Add(-waited)}
}

func sub(c Chat) Chat {
	c.Sub = true
	return c
}

// limits are those of a quota of the name.
func limits(quota string, chats, subChats int32) Limits {
	return Limits{Chats: Limit{chats, quota}, SubChats: Limit{subChats, quota}}
}

// newGate returns a gate with the limits for all namespaces together and for each.
func newGate(all, each int32) *Gate {
	g := NewGate()
	g.SetCluster(ClusterLimits{All: limits("default", all, all), Namespace: limits("default", each, each)})
	return g
}

// called are the chats that the gate calls now, none if it calls none.
func called(g *Gate) (names []string) {
	select {
	case <-g.signal:
		g.signal <- struct{}{}
	default:
		return nil
	}
	for _, key := range g.Requeue(context.Background()) {
		names = append(names, key.String())
	}
	return names
}

func wantRequeue(t *testing.T, g *Gate, want ...string) {
	t.Helper()
	check.Equal(t, "called are", want, called(g))
}

func TestChatRecreatedAsSubChatFreesItsSlot(t *testing.T) {
	g := newGate(1, 1)
	g.Hold(chat("a", "1", 0))
	g.Wait(chat("a", "2", time.Hour))
	check.Equal(t, "it is held by", nil, g.Enter(sub(chat("a", "1", 0))))
	wantRequeue(t, g, "a/2")
}

func TestSlotsAreLimitedPerNamespaceClusterAndKind(t *testing.T) {
	g := NewGate()
	g.SetCluster(ClusterLimits{All: limits("default", 3, 1), Namespace: limits("default", 2, 1)})
	for _, c := range []struct {
		chat Chat
		want bool
	}{
		{chat("a", "1", 0), true},
		{chat("a", "2", 0), true},
		{chat("a", "1", 0), true},       // It has a slot.
		{chat("a", "3", 0), false},      // The namespace is full.
		{chat("b", "1", 0), true},       //
		{chat("b", "2", 0), false},      // All of them are full.
		{sub(chat("b", "3", 0)), true},  // Sub-chats count apart.
		{sub(chat("a", "4", 0)), false}, //
	} {
		if held := g.Enter(c.chat); (held == nil) != c.want {
			t.Errorf("%s is held by %v", c.chat.Key, held)
		}
	}
}

func TestSlotGoesToEmptiestNamespaceThenLongestWaiting(t *testing.T) {
	g := newGate(3, 3)
	for _, c := range []Chat{chat("a", "1", 0), chat("a", "2", 0), chat("b", "1", 0)} {
		g.Hold(c)
	}
	for _, c := range []Chat{chat("b", "newer", 0), chat("a", "old", time.Hour), chat("b", "new", time.Second)} {
		g.Wait(c)
	}
	wantRequeue(t, g)
	g.Leave(chat("a", "2", 0).Key)
	wantRequeue(t, g, "a/old") // Both have one; this one has waited longer.
	g.Leave(chat("a", "1", 0).Key)
	wantRequeue(t, g, "b/new") // Both have one again.
	g.Leave(chat("b", "1", 0).Key)
	wantRequeue(t, g, "b/newer")
}

func TestFreedSlotIsReservedForNextInQueue(t *testing.T) {
	g := newGate(1, 1)
	g.Hold(chat("a", "1", 0))
	g.Wait(chat("a", "2", time.Hour))
	g.Leave(chat("a", "1", 0).Key)
	if g.Enter(chat("a", "3", 0)) == nil {
		t.Error("a newcomer overtakes")
	}
	check.Equal(t, "who waited longest is held by", nil, g.Enter(chat("a", "2", time.Hour)))
}

func TestRaisedLimitsAdmitWaitingChatsInFairOrder(t *testing.T) {
	g := newGate(100, 100)
	g.SetNamespace("a", limits("team", 1, 1))
	g.Hold(chat("a", "0", 0))
	for i := range 5 {
		g.Wait(chat("a", fmt.Sprint("w", i), time.Duration(i)*time.Minute))
	}
	g.Wait(sub(chat("a", "s", 0)))
	wantRequeue(t, g, "a/s")
	g.SetNamespace("a", limits("team", 3, 1))
	wantRequeue(t, g, "a/w4", "a/w3", "a/w2", "a/w1", "a/w0") // Two got in, and three are told what holds them now.
	for name, in := range map[string]bool{"w4": true, "w3": true, "w2": false, "w1": false, "w0": false} {
		if held := g.Enter(chat("a", name, 0)); (held == nil) != in {
			t.Errorf("%s is held by %v", name, held)
		}
	}
	g.SetNamespace("a", limits("team", 3, 1))
	wantRequeue(t, g) // Nothing has changed.
	g.SetNamespace("a", Limits{})
	if generating, waiting := g.Counts(); generating != (Counts{6, 1}) || waiting != (Counts{}) {
		t.Errorf("without a quota %v generate and %v wait", generating, waiting)
	}
}

func TestLoweredLimitsHoldOnlyNextSteps(t *testing.T) {
	g := newGate(100, 100)
	for i := range 4 {
		g.Hold(chat("a", fmt.Sprint(i), 0))
	}
	g.SetNamespace("a", limits("team", 2, 2))
	g.Wait(chat("a", "w", time.Hour))
	if generating, _ := g.Counts(); generating.Chats != 4 {
		t.Errorf("%d generate", generating.Chats)
	}
	for i := range 2 { // Two come to the end of their steps first.
		c := chat("a", fmt.Sprint(i), time.Minute)
		if held := g.Enter(c); held == nil || held.Quota != "team" {
			t.Errorf("the next step of %d is held by %v", i, held)
		}
		g.Wait(c)
		wantRequeue(t, g) // As many generate as may, or more.
	}
	check.Equal(t, "at the limit, the next step is held by", nil, g.Enter(chat("a", "2", 0)))
	g.Leave(chat("a", "2", 0).Key)
	wantRequeue(t, g, "a/w")
}

func TestZeroHoldsAllUntilItIsRaised(t *testing.T) {
	g := NewGate()
	g.SetCluster(ClusterLimits{All: limits("default", 0, 5), Namespace: limits("default", 5, 5)})
	g.Wait(chat("a", "1", 0))
	if held := g.Enter(chat("b", "1", 0)); held == nil || held.Scope != AllNamespaces {
		t.Errorf("held by %v", held)
	}
	check.Equal(t, "a sub-chat is held by", nil, g.Enter(sub(chat("a", "2", 0))))
	wantRequeue(t, g)
	g.SetCluster(OfCluster(nil))
	wantRequeue(t, g, "a/1")
}

func TestAFullNamespaceHoldsNoOther(t *testing.T) {
	g := newGate(100, 2)
	g.SetNamespace("a", limits("team", 0, 0))
	for i := range 50 {
		g.Wait(chat("a", fmt.Sprint(i), time.Hour))
	}
	for i := range 2 {
		check.Equal(t, "held by", nil, g.Enter(chat("b", fmt.Sprint(i), 0)))
	}
}

func TestRecreatedChatMayChangeKindOfSlot(t *testing.T) {
	g := newGate(1, 1)
	g.Hold(chat("a", "1", 0))
	check.Equal(t, "held by", nil, g.Enter(sub(chat("a", "1", 0))))
	if generating, _ := g.Counts(); generating != (Counts{0, 1}) {
		t.Errorf("%v generate", generating)
	}
}

func TestTheAccountForgetsWhoIsGone(t *testing.T) {
	g := newGate(1, 1)
	for i := range 100 {
		ns := fmt.Sprint("ns", i)
		g.SetNamespace(ns, limits("team", 1, 1))
		_ = g.Enter(chat(ns, "1", 0))
		g.Wait(chat(ns, "2", 0))
		g.SetNamespace(ns, Limits{})
		g.Leave(chat(ns, "1", 0).Key)
		g.Leave(chat(ns, "2", 0).Key)
	}
	if len(g.namespaces) != 0 || len(g.slots) != 0 || len(g.backlogged[0]) != 0 {
		t.Errorf("%d namespaces, %d slots and %d crowds are left", len(g.namespaces), len(g.slots), len(g.backlogged[0]))
	}
}

// TestTheCountsAreThoseOfTheAccount does things at random, and counts again after each.
func TestTheCountsAreThoseOfTheAccount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	g := newGate(4, 3)
	var trail []string
	for range 20000 {
		c := chat(fmt.Sprint("ns", random.IntN(3)), fmt.Sprint(random.IntN(6)), time.Duration(random.IntN(5)))
		c.Sub = c.Key.Name == "0" || c.Key.Name == "1" && random.IntN(10) == 0
		c.Elsewhere = c.Key.Namespace == "ns2"
		does := random.IntN(7)
		if does == 4 && c.Elsewhere {
			continue // Who lets it in asks another gate.
		}
		trail = append(trail, fmt.Sprint(does, " ", c.Key, " ", c.Sub))
		switch does {
		case 0:
			g.Hold(c)
		case 1, 2:
			g.Wait(c)
		case 3:
			g.Leave(c.Key)
		case 4:
			_ = g.Enter(c)
		case 5:
			g.SetNamespace(c.Key.Namespace,
				[]Limits{{}, limits("q", 0, 1), limits("q", 2, 0), {Chats: Limit{5, "q"}}}[random.IntN(4)])
		case 6:
			n := int32(random.IntN(8))
			g.SetCluster(ClusterLimits{All: limits("default", n, 3), Namespace: limits("default", 3, n)})
		}
		for _, key := range called(g) {
			if strings.HasPrefix(key, "ns2/") {
				t.Fatalf("%s is called here", key)
			}
		}
		if problem := audit(g); problem != "" {
			t.Fatalf("%s, after\n%s", problem, strings.Join(trail[max(0, len(trail)-10):], "\n"))
		}
	}
}

// audit restarts the count. It says what is wrong with the account.
func audit(g *Gate) string {
	generating, waiting := map[string]*Counts{"": {}}, Counts{}
	for key, p := range g.slots {
		if p.waits {
			*waiting.of(p.Sub)++
			n := g.namespaces[key.Namespace]
			if held := g.heldBy(key.Namespace, n, p.Sub, 0); held == nil {
				return key.String() + " waits though it has a slot"
			}
			if !slices.Contains(n.waiting[sortOf(p.Sub)], p) {
				return key.String() + " is not where it waits"
			}
			continue
		}
		if generating[key.Namespace] == nil {
			generating[key.Namespace] = &Counts{}
		}
		*generating[key.Namespace].of(p.Sub)++
		*generating[""].of(p.Sub)++
	}
	for name, n := range g.namespaces {
		if got := generating[name]; got == nil && n.generating != (Counts{}) || got != nil && *got != n.generating {
			return fmt.Sprintf("%v generate in %s, it counts %v", got, name, n.generating)
		}
	}
	queued := Counts{}
	for _, n := range g.namespaces {
		queued.Chats += len(n.waiting[0])
		queued.SubChats += len(n.waiting[1])
	}
	if *generating[""] != g.generating || waiting != queued {
		return fmt.Sprintf("%v generate and %v wait, it counts %v and %v", *generating[""], waiting, g.generating, queued)
	}
	for key, p := range g.kept {
		if g.slots[key] != p || p.waits || !p.Elsewhere {
			return key.String() + " has no slot, and one is kept free for it"
		}
	}
	return ""
}

func TestCalledEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Equal(t, "called are", nil, NewGate().Requeue(ctx))
}

func TestHeldChatReportsLimitAndRemedy(t *testing.T) {
	for _, c := range []struct {
		held Held
		want string
	}{
		{
			Held{Limit{2, "team"}, OwnNamespace, "demo", false},
			"ChatQuota team allows 2 chats to generate at once in namespace demo: wait until a chat is done, or raise " +
				"spec.generating.chats there",
		},
		{
			Held{Limit{0, "team"}, OwnNamespace, "demo", true},
			"ChatQuota team allows no sub-chats to generate in namespace demo: raise spec.generating.subChats there",
		},
		{
			Held{Limit{1, "default"}, EachNamespace, "demo", false},
			"ClusterChatQuota default allows 1 chat to generate at once in a namespace without a ChatQuota for them: wait " +
				"until a chat is done, " +
				"or set spec.generating.chats in a ChatQuota of namespace demo",
		},
		{
			Held{Limit{500, ""}, EachNamespace, "demo", false},
			"Parley's default allows 500 chats to generate at once in a namespace without a ChatQuota for them: wait until a " +
				"chat is done, " +
				"or set spec.generating.chats in a ChatQuota of namespace demo",
		},
		{
			Held{Limit{9, "default"}, AllNamespaces, "demo", false},
			"ClusterChatQuota default allows 9 chats to generate at once in all namespaces together: wait until a chat " +
				"is done, " +
				"or raise spec.generating.chats there",
		},
		{
			Held{Limit{2000, ""}, AllNamespaces, "demo", false},
			"Parley's default allows 2000 chats to generate at once in all namespaces together: wait until a chat is done, " +
				"or set spec.generating.chats in ClusterChatQuota default",
		},
	} {
		if diff := cmp.Diff(c.want, c.held.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func BenchmarkATurnWhileThousandsGenerateAndNobodyWaits(b *testing.B) {
	g := newGate(10000, 10000)
	for i := range 5000 {
		g.Hold(chat(fmt.Sprint("ns", i%500), fmt.Sprint(i), 0))
	}
	c := chat("ns1", "one", 0)
	for b.Loop() {
		if g.Enter(c) != nil {
			b.Fatal("no slot")
		}
		g.Hold(c)
		g.Leave(c.Key)
	}
}

func BenchmarkTurnWithThousandFullNamespacesWaiting(b *testing.B) {
	g := newGate(10000, 1)
	for i := range 1000 {
		g.Hold(chat(fmt.Sprint("ns", i), "holds", 0))
		g.Wait(chat(fmt.Sprint("ns", i), "waits", 0))
	}
	c := chat("free", "one", 0)
	for b.Loop() {
		if g.Enter(c) != nil {
			b.Fatal("no slot")
		}
		g.Hold(c)
		g.Leave(c.Key)
	}
}
