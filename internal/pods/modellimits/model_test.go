// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modellimits

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// modelChat is a chat of the model.
type modelChat struct {
	Call
	state state
	// until is what Enter returned last.
	until time.Time
	// mustAsk is true after the gate requeued it.
	mustAsk bool
	idle    bool
}

// model is a gate next to the lists of all that happened.
type model struct {
	*testing.T
	gate   *Gate
	random *rand.Rand
	now    time.Time
	limits Limits
	retry  time.Time
	chats  map[string]*modelChat
	starts []time.Time
	// ended has the tokens of each time at which calls ended.
	ended map[time.Time]int64
	trail []string
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	m := &model{T: t, gate: NewGate(), random: rand.New(rand.NewPCG(11, seed)), now: t0,
		chats: map[string]*modelChat{}, ended: map[time.Time]int64{}}
	for i := range 12 {
		c := call(fmt.Sprintf("%02d", i), 0)
		m.chats[c.Chat.Name] = &modelChat{Call: c, idle: true}
	}
	m.setLimits()
	return m
}

func (m *model) setLimits() {
	m.limits = Limits{ConcurrentCalls: m.random.Int32N(5), RequestsPerMinute: m.random.Int32N(12),
		TokensPerMinute: m.random.Int64N(3) * 500}
	m.gate.SetConfig(fast, m.limits, time.Time{}, m.now)
}

// canEnter counts all calls again, without the gate.
func (m *model) canEnter(c *modelChat, now time.Time) bool {
	underWay, requests, rank, sinceRetry := 0, 0, 0, 0
	tokens, used := c.Tokens, int64(0)
	for _, start := range m.startsWithReserved(c) {
		if start.After(now.Add(-time.Minute)) {
			requests++
		}
		if !start.Before(m.retry) {
			sinceRetry++
		}
	}
	for at, n := range m.ended {
		if at.After(now.Add(-time.Minute)) {
			used += n
		}
	}
	for _, other := range m.chats {
		switch {
		case other == c || other.idle:
		case other.state == calling, other.state == reserved:
			underWay++
			tokens += other.Tokens
		case other.state == waiting && other.isBefore(c):
			rank++
			tokens += other.Tokens
		}
	}
	alone := underWay == 0 && rank == 0 && used == 0
	l, passed := m.limits, now.Sub(m.retry)
	return (l.ConcurrentCalls == 0 || underWay+rank < int(l.ConcurrentCalls)) &&
		(l.RequestsPerMinute == 0 || requests+rank < int(l.RequestsPerMinute)) &&
		(l.TokensPerMinute == 0 || alone || tokens+used <= l.TokensPerMinute) &&
		(m.retry.IsZero() || passed >= 10*time.Second || passed >= 0 && sinceRetry+rank < 1<<int(passed.Seconds()))
}

func (c *modelChat) isBefore(other *modelChat) bool {
	if other.Since.IsZero() {
		return true
	}
	return c.Since.Before(other.Since) || c.Since.Equal(other.Since) && c.Chat.Name < other.Chat.Name
}

func (m *model) startsWithReserved(without *modelChat) []time.Time {
	starts := slices.Clone(m.starts)
	for _, c := range m.chats {
		if c != without && !c.idle && c.state == reserved {
			starts = append(starts, c.Started)
		}
	}
	return starts
}

// enter asks the gate for a place, and compares the answer.
func (m *model) enter(c *modelChat) {
	c.mustAsk = false
	want := m.canEnter(c, m.now)
	held := m.gate.Enter(c.Call, m.now)
	if (held == nil) != want {
		m.Fatalf("%s is held by %v, want entered: %t, with %+v after\n%s", c.Chat.Name, held, want, m.limits, m.last())
	}
	switch {
	case held == nil:
		c.idle, c.state, c.Started = false, reserved, m.now
		return
	case held.Until.IsZero() && m.canEnter(c, m.now.Add(time.Hour)):
		m.Fatalf("%s: time alone ends %s, after\n%s", c.Chat.Name, held, m.last())
	case !held.Until.IsZero() && (!held.Until.After(m.now) || m.canEnter(c, held.Until.Add(-1))):
		m.Fatalf("%s can enter before %s, after\n%s", c.Chat.Name, held.Until, m.last())
	}
	c.until = held.Until
	if c.idle {
		c.idle, c.state = false, refused
	}
}

// act lets one thing happen to the chat.
func (m *model) act(c *modelChat) {
	m.trail = append(m.trail, fmt.Sprint(m.now.Sub(t0), " ", c.Chat.Name, " idle ", c.idle, " state ", c.state))
	switch {
	case c.idle:
		m.now = m.now.Add(time.Millisecond) // A chat starts no two calls at once.
		c.Since, c.Tokens = time.Time{}, m.random.Int64N(400)
		m.enter(c)
	case c.state == refused:
		c.state, c.Since = waiting, m.now
		m.gate.Wait(c.Call, m.now)
	case c.state == reserved && m.random.IntN(5) > 0:
		c.state, c.Started = calling, m.now
		m.starts = append(m.starts, m.now)
		m.gate.Hold(c.Call, m.now)
	case c.state == reserved && !c.Since.IsZero():
		c.state, c.mustAsk = waiting, true // It knows that it can enter.
		m.gate.Wait(c.Call, m.now)
	case c.state != waiting || m.random.IntN(8) == 0:
		used := m.random.Int64N(2) * m.random.Int64N(400)
		m.gate.Leave(c.Chat, used, m.now)
		if c.state == calling {
			m.ended[m.now] += used
		}
		c.idle = true
	}
}

// ask lets the chats enter that were requeued, or whose time has come, in any order.
func (m *model) ask() {
	for _, name := range slices.Sorted(maps.Keys(m.chats)) {
		c := m.chats[name]
		isDue := !c.until.IsZero() && !c.until.After(m.now)
		if !c.idle && c.state == waiting && (c.mustAsk || isDue) {
			m.trail = append(m.trail, fmt.Sprint(m.now.Sub(t0), " ", name, " asks"))
			m.enter(c)
		}
	}
}

// check finds a chat that could enter and does not know it.
func (m *model) check() {
	for _, name := range requeued(m.gate) {
		m.chats[name].mustAsk = true
	}
	for name, c := range m.chats {
		isDue := c.mustAsk || !c.until.IsZero() && !c.until.After(m.now)
		if !c.idle && c.state == waiting && !isDue && m.canEnter(c, m.now) {
			m.Fatalf("%s can enter and is not requeued, after\n%s", name, m.last())
		}
	}
}

func (m *model) last() string { return strings.Join(m.trail[max(0, len(m.trail)-15):], "\n") }

func (m *model) step(changes bool) {
	c := m.chats[fmt.Sprintf("%02d", m.random.IntN(len(m.chats)))]
	switch n := m.random.IntN(100); {
	case n < 25:
		m.now = m.now.Add(time.Duration(m.random.IntN(4000)) * time.Millisecond)
	case n < 40:
		m.ask()
	case n < 42:
		if t := m.now.Add(time.Duration(m.random.IntN(5)) * time.Second); t.After(m.retry) {
			m.retry = t
			m.gate.SetConfig(fast, m.limits, t, m.now)
		}
	case n < 44 && changes:
		m.trail = append(m.trail, "limits change")
		m.setLimits()
	default:
		m.act(c)
	}
	m.check()
}

// checkStarts finds a minute with more starts than the limit.
func (m *model) checkStarts() {
	for i, n := 0, int(m.limits.RequestsPerMinute); n > 0 && i+n < len(m.starts); i++ {
		if m.starts[i+n].Sub(m.starts[i]) < time.Minute {
			m.Fatalf("more than %d calls started in the minute from %s", n, m.starts[i])
		}
	}
}

func TestRandomCallsAgreeWithNaiveModel(t *testing.T) {
	for seed := range uint64(80) {
		m, changes := newModel(t, seed), seed%2 == 0
		for range 400 {
			m.step(changes)
		}
		if !changes {
			m.checkStarts()
		}
		for _, c := range m.chats {
			m.gate.Leave(c.Chat, 0, m.now)
		}
		m.gate.ForgetConfig(fast)
		if len(m.gate.configs)+len(m.gate.chats) > 0 {
			t.Fatalf("seed %d: %v and %v are left", seed, m.gate.configs, m.gate.chats)
		}
	}
}
