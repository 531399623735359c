// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modellimits

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/test/kit/check"
)

var (
	t0   = time.Date(2026, 11, 25, 18, 0, 0, 0, time.UTC)
	fast = types.NamespacedName{Namespace: "a", Name: "fast"}
)

func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "a", Name: name} }

func call(name string, tokens int64) Call { return Call{Chat: key(name), Config: fast, Tokens: tokens} }

func (c Call) since(seconds float64) Call {
	c.Since = at(seconds)
	return c
}

func (c Call) started(seconds float64) Call {
	c.Started = at(seconds)
	return c
}

func newGate(limits Limits) *Gate {
	g := NewGate()
	g.SetConfig(fast, limits, time.Time{}, t0)
	return g
}

// requeued are the names of the chats that the gate returns now.
func requeued(g *Gate) (names []string) {
	if len(g.signal) == 0 {
		return nil
	}
	for _, key := range g.Requeue(context.Background()) {
		names = append(names, key.Name)
	}
	return names
}

func wantRequeued(t *testing.T, g *Gate, want ...string) {
	t.Helper()
	check.Equal(t, "requeued", want, requeued(g))
}

// wantHeld wants the chat to be held for the reason until so many seconds have passed; zero: until an event.
func wantHeld(t *testing.T, held *Held, reason Reason, seconds float64) {
	t.Helper()
	want := time.Time{}
	if seconds != 0 {
		want = at(seconds)
	}
	if held == nil || held.Reason != reason || !held.Until.Equal(want) {
		t.Errorf("held %+v, want %s until %s", held, reason, want)
	}
}

func wantEntered(t *testing.T, held *Held) {
	t.Helper()
	if held != nil {
		t.Errorf("held by %s until %s", held, held.Until)
	}
}

func TestFreePlaceGoesToLongestWaiting(t *testing.T) {
	g := newGate(Limits{ConcurrentCalls: 1})
	g.Hold(call("1", 0).started(0), at(0))
	g.Wait(call("new", 0).since(2), at(2))
	g.Wait(call("old", 0).since(1), at(2))
	wantRequeued(t, g)
	g.Leave(key("1"), 0, at(3))
	wantRequeued(t, g, "old")
	wantHeld(t, g.Enter(call("newcomer", 0), at(3)), ConcurrentCalls, 0)
	wantHeld(t, g.Enter(call("new", 0).since(2), at(3)), ConcurrentCalls, 0)
	wantEntered(t, g.Enter(call("old", 0).since(1), at(3)))
	g.Leave(key("old"), 0, at(4)) // It gives its place back.
	wantRequeued(t, g, "new")
	if calling, waiting := g.Counts(fast); calling != 0 || waiting != 1 {
		t.Errorf("%d call and %d wait", calling, waiting)
	}
}

func TestReservedPlacesCountAtOnce(t *testing.T) {
	for name, limits := range map[string]Limits{
		"concurrent": {ConcurrentCalls: 3}, "requests": {RequestsPerMinute: 3}, "tokens": {TokensPerMinute: 3000},
	} {
		t.Run(name, func(t *testing.T) {
			g, entered := newGate(limits), 0
			for i := range 100 {
				if g.Enter(call(fmt.Sprint(i), 1000), t0) == nil {
					entered++
				}
			}
			check.Equal(t, "entered", 3, entered)
			g.Wait(call("w", 1000).since(0), t0)
			g.Leave(key("0"), 0, t0)
			wantRequeued(t, g, "w")
		})
	}
}

func TestRequestsExpireAfterExactlyOneMinute(t *testing.T) {
	g := newGate(Limits{RequestsPerMinute: 2})
	for i := range 2 {
		wantEntered(t, g.Enter(call(fmt.Sprint(i), 0), at(float64(i))))
		g.Hold(call(fmt.Sprint(i), 0).started(float64(i)), at(float64(i)))
		g.Hold(call(fmt.Sprint(i), 5).started(float64(i)), at(2)) // The same start.
		g.Leave(key(fmt.Sprint(i)), 0, at(3))
	}
	wantHeld(t, g.Enter(call("w", 0), at(59.9)), RequestsPerMinute, 60)
	g.Wait(call("w", 0).since(4), at(59.9))
	wantHeld(t, g.Enter(call("x", 0), at(59.9)), RequestsPerMinute, 61)
	g.Wait(call("x", 0).since(5), at(59.9))
	wantHeld(t, g.Enter(call("y", 0), at(59.9)), RequestsPerMinute, 119.9)
	wantRequeued(t, g)
	g.Leave(key("w"), 0, at(59.9))
	wantRequeued(t, g, "x") // It can now enter at 60.
	wantEntered(t, g.Enter(call("x", 0).since(5), at(60)))
}

func TestTokensOfEndedCallsLimitTheNext(t *testing.T) {
	g := newGate(Limits{TokensPerMinute: 1000})
	g.Hold(call("1", 400).started(0), at(0))
	g.Hold(call("2", 300).started(0), at(0))
	wantHeld(t, g.Enter(call("w", 400), at(1)), TokensPerMinute, 0)
	g.Wait(call("w", 400).since(1), at(1))
	g.Leave(key("1"), 500, at(2))
	wantRequeued(t, g, "w") // It must learn that time alone lets it enter now.
	wantHeld(t, g.Enter(call("w", 400).since(1), at(2)), TokensPerMinute, 62)
	wantHeld(t, g.Enter(call("small", 1), at(2)), TokensPerMinute, 62) // It does not overtake.
	g.Leave(key("2"), 0, at(3))
	wantRequeued(t, g, "w") // A call without reported usage counts nothing.
	wantEntered(t, g.Enter(call("w", 400).since(1), at(3)))
}

func TestOversizedCallEntersAlone(t *testing.T) {
	g := newGate(Limits{TokensPerMinute: 1000})
	g.Hold(call("1", 10).started(0), at(0))
	wantHeld(t, g.Enter(call("huge", 5000), at(0)), TokensPerMinute, 0)
	g.Wait(call("huge", 5000).since(0), at(0))
	g.Leave(key("1"), 10, at(1))
	wantRequeued(t, g, "huge")
	wantHeld(t, g.Enter(call("huge", 5000).since(0), at(1)), TokensPerMinute, 61)
	wantHeld(t, g.Enter(call("tiny", 1), at(1)), TokensPerMinute, 0)
	wantEntered(t, g.Enter(call("huge", 5000).since(0), at(61)))
	wantHeld(t, g.Enter(call("tiny", 1), at(61)), TokensPerMinute, 0)
}

func TestRetryAfterRampsUpInPowersOfTwo(t *testing.T) {
	g := NewGate()
	g.SetConfig(fast, Limits{}, at(30), at(0))
	g.SetConfig(fast, Limits{}, at(20), at(0)) // The later one wins.
	for i := range 600 {
		wait := call(fmt.Sprintf("%04d", i), 0).since(float64(i) - 600)
		if held := g.Enter(wait, at(1)); held == nil || held.Until.Before(at(30)) {
			t.Fatalf("chat %d is held by %v", i, held)
		}
		g.Wait(wait, at(1))
	}
	entered := 0
	for second, want := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600} {
		for i := entered; i < 600; i++ {
			wait := call(fmt.Sprintf("%04d", i), 0).since(float64(i) - 600)
			held := g.Enter(wait, at(float64(30+second)))
			if held != nil {
				wantHeld(t, held, RetryAfter, float64(30+second+1))
				break
			}
			g.Hold(wait.started(float64(30+second)), at(float64(30+second)))
			entered++
		}
		if entered != want {
			t.Fatalf("%d have started after %d s, want %d", entered, second, want)
		}
	}
	g.SetConfig(fast, Limits{}, at(50), at(45))
	wantHeld(t, g.Enter(call("w", 0), at(45)), RetryAfter, 50)
}

func TestChangedLimitsRequeueAllInOrder(t *testing.T) {
	g := newGate(Limits{ConcurrentCalls: 1})
	g.Hold(call("1", 0).started(0), at(0))
	for i := range 4 {
		g.Wait(call(fmt.Sprint("w", i), 0).since(float64(10-i)), at(10))
	}
	g.SetConfig(fast, Limits{ConcurrentCalls: 3}, time.Time{}, at(11))
	wantRequeued(t, g, "w3", "w2", "w1", "w0") // Two can enter, and two have a new reason.
	g.SetConfig(fast, Limits{ConcurrentCalls: 3}, time.Time{}, at(11))
	wantRequeued(t, g)
	for i, wantIn := range []bool{false, false, true, true} {
		if held := g.Enter(call(fmt.Sprint("w", i), 0).since(float64(10-i)), at(11)); (held == nil) != wantIn {
			t.Errorf("w%d is held by %v", i, held)
		}
	}
	g.ForgetConfig(fast)
	wantRequeued(t, g, "w1", "w0")
}

func TestUnusedPlaceIsNotRequeuedToItsChat(t *testing.T) {
	g := newGate(Limits{ConcurrentCalls: 1})
	for range 3 {
		wantEntered(t, g.Enter(call("1", 0).since(0), at(1)))
		g.Wait(call("1", 0).since(0), at(1))
		wantRequeued(t, g)
	}
}

func TestPlaceFreedBeforeWaitIsRequeued(t *testing.T) {
	g := newGate(Limits{ConcurrentCalls: 1})
	g.Hold(call("1", 0).started(0), at(0))
	wantHeld(t, g.Enter(call("w", 0), at(1)), ConcurrentCalls, 0)
	g.Leave(key("1"), 0, at(1))
	wantRequeued(t, g)
	g.Wait(call("w", 0).since(1), at(1))
	wantRequeued(t, g, "w")
}

func TestNextCallReplacesTheOneUnderWay(t *testing.T) {
	slow := key("slow")
	g := newGate(Limits{ConcurrentCalls: 1})
	g.SetConfig(slow, Limits{ConcurrentCalls: 1}, time.Time{}, t0)
	g.Hold(call("1", 0).started(0), at(0))
	wantEntered(t, g.Enter(call("1", 0), at(1)))
	g.Wait(call("w", 0).since(1), at(1))
	wantEntered(t, g.Enter(Call{Chat: key("1"), Config: slow}, at(2)))
	wantRequeued(t, g, "w") // The chat calls another ChatModelConfig now.
}

func TestReservedPlaceIsLostToRetryAfter(t *testing.T) {
	g := newGate(Limits{ConcurrentCalls: 1})
	wantEntered(t, g.Enter(call("1", 0), at(0)))
	g.SetConfig(fast, Limits{ConcurrentCalls: 1}, at(9), at(0))
	wantHeld(t, g.Enter(call("1", 0), at(1)), RetryAfter, 9)
	if calling, waiting := g.Counts(fast); calling+waiting != 0 {
		t.Errorf("%d call and %d wait", calling, waiting)
	}
}

func TestHeldIsTheLimitThatLastsLongest(t *testing.T) {
	g := newGate(Limits{RequestsPerMinute: 1, TokensPerMinute: 100})
	g.Hold(call("1", 90).started(0), at(0))
	wantHeld(t, g.Enter(call("w", 90), at(1)), TokensPerMinute, 0)
	g.Wait(call("w", 90).since(1), at(1))
	g.SetConfig(fast, Limits{RequestsPerMinute: 1, TokensPerMinute: 100}, at(30), at(2))
	g.Leave(key("1"), 90, at(3))
	wantRequeued(t, g, "w")
	wantHeld(t, g.Enter(call("w", 90).since(1), at(3)), TokensPerMinute, 63)
	wantHeld(t, g.Enter(call("w", 10).since(1), at(3)), RequestsPerMinute, 60)
}

func TestGateForgetsConfigsWithoutLimits(t *testing.T) {
	g := NewGate()
	for i := range 100 {
		c := call(fmt.Sprint(i), 1).started(float64(i))
		c.Config = key(fmt.Sprint(i))
		g.SetConfig(c.Config, Limits{RequestsPerMinute: 1}, at(0), at(20))
		wantEntered(t, g.Enter(c, at(20)))
		g.Hold(c, at(20))
		g.ForgetConfig(c.Config)
		g.Leave(c.Chat, 5, at(20))
		if !g.RetryAfter(c.Config).IsZero() {
			t.Error("retryAfter is known")
		}
	}
	if len(g.configs) != 0 || len(g.chats) != 0 {
		t.Errorf("%d configs and %d chats are left", len(g.configs), len(g.chats))
	}
}

func TestRequeueEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Equal(t, "requeued", nil, NewGate().Requeue(ctx))
}

func TestHeldNamesLimitAndAdvice(t *testing.T) {
	for _, c := range []struct {
		held Held
		want string
	}{
		{Held{Config: fast, Reason: ConcurrentCalls, Limit: 10},
			"ChatModelConfig fast allows 10 concurrent calls (spec.limits.concurrentCalls): wait until one ends, or raise it"},
		{Held{Config: fast, Reason: RequestsPerMinute, Limit: 1, Until: t0},
			"ChatModelConfig fast allows 1 request per minute (spec.limits.requestsPerMinute): wait, or raise it"},
		{Held{Config: fast, Reason: TokensPerMinute, Limit: 5000, Until: t0},
			"ChatModelConfig fast allows 5000 tokens per minute (spec.limits.tokensPerMinute): wait, or raise it"},
		{Held{Config: fast, Reason: RetryAfter, RetryAfter: t0, Until: at(3)},
			"The provider of ChatModelConfig fast asked to wait until 2026-11-25T18:00:00Z: then calls start again, the " +
				"first alone"},
	} {
		if diff := cmp.Diff(c.want, c.held.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestConcurrentUseKeepsTheLimit(t *testing.T) {
	g := newGate(Limits{ConcurrentCalls: 3})
	var chats sync.WaitGroup
	for i := range 8 {
		chats.Go(func() {
			for n := range 200 {
				c, now := call(fmt.Sprint(i), 1).started(float64(n)), at(float64(n))
				if g.Enter(c, now) == nil {
					g.Hold(c, now)
				}
				if calling, _ := g.Counts(fast); calling > 3 {
					t.Errorf("%d call", calling)
				}
				g.Leave(c.Chat, 1, now)
			}
		})
	}
	chats.Wait()
}

func BenchmarkCallWhileThousandWait(b *testing.B) {
	g := newGate(Limits{ConcurrentCalls: 100, RequestsPerMinute: 10000, TokensPerMinute: 1e9})
	for i := range 100 {
		g.Hold(call(fmt.Sprint("h", i), 1).started(0), t0)
	}
	for i := range 1000 {
		g.Wait(call(fmt.Sprint("w", i), 1).since(float64(i)), t0)
	}
	for b.Loop() {
		g.Hold(call("one", 1).started(1), t0)
		g.Leave(key("one"), 1, t0)
	}
}
