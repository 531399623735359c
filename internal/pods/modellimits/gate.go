// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modellimits limits the calls to each ChatModelConfig, over all generation pods of a cluster: how many run at
// once, how many start and how many tokens they use in a minute, and when they start again after the provider asked to
// wait. It uses no client and no clock: callers report calls and pass the time. The state is in memory only.
//
// The invariant: a chat that waits for a ChatModelConfig comes before all that began to wait later, and before all that
// do not wait yet. A chat enters only if the limits also leave room for all that come before it. As soon as an event
// lets a waiting chat enter, or enter sooner than Held.Until says, Requeue returns it.
//
// One gate is enough: all chats of a ChatModelConfig are in its namespace, which belongs to one manager.
package modellimits

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Limits of one ChatModelConfig; zero: no limit.
type Limits struct {
	ConcurrentCalls, RequestsPerMinute int32
	TokensPerMinute                    int64
}

// Call is a call that a chat makes, or wants to make. A chat has at most one.
type Call struct {
	Chat, Config types.NamespacedName
	// Since is when the chat began to wait; zero: it does not wait yet.
	Since time.Time
	// Started is when the call began.
	Started time.Time
	// Tokens is an estimate of what the call uses. It counts until the call ends.
	Tokens int64
	// Sub is true for a chat that has a parent. It counts only for Blocked.
	Sub bool
	// Blocked is true for a chat that waits for something else, too, which is short for all chats with the same Sub. It
	// keeps its place, and those with another Sub go past it.
	Blocked bool
}

// Gate counts the calls to all ChatModelConfigs. A new process reports to it the calls that it reads from the cluster.
type Gate struct {
	mu      sync.Mutex
	configs map[types.NamespacedName]*config
	chats   map[types.NamespacedName]*entry
	// pending are the chats that Requeue returns next.
	pending []types.NamespacedName
	// signal has a value while pending is not empty.
	signal chan struct{}
}

// NewGate returns a gate without limits.
func NewGate() *Gate {
	return &Gate{configs: map[types.NamespacedName]*config{}, chats: map[types.NamespacedName]*entry{},
		signal: make(chan struct{}, 1)}
}

// SetConfig sets the limits of a ChatModelConfig, and the time before which its provider asked not to be called. An
// earlier retryAfter than the known one changes nothing. Calls under way continue. If the limits change, all waiting
// chats are requeued, because their status names the old limit.
func (g *Gate) SetConfig(name types.NamespacedName, limits Limits, retryAfter, now time.Time) {
	g.change(name, now, func(c *config) {
		c.delay(retryAfter)
		g.setLimits(c, limits)
	})
}

// SetRetryAfter records that the provider asked not to be called before a time. An earlier one than the known one
// changes nothing.
func (g *Gate) SetRetryAfter(name types.NamespacedName, until, now time.Time) {
	g.change(name, now, func(c *config) { c.delay(until) })
}

// ForgetRetryAfter ends the wait that the provider asked for: the ChatModelConfig was changed.
func (g *Gate) ForgetRetryAfter(name types.NamespacedName, now time.Time) {
	g.change(name, now, func(c *config) { c.retryAfter = time.Time{} })
}

// ForgetConfig removes the limits and the retryAfter of a ChatModelConfig that was deleted.
func (g *Gate) ForgetConfig(name types.NamespacedName) {
	g.change(name, time.Time{}, func(c *config) {
		c.retryAfter = time.Time{}
		g.setLimits(c, Limits{})
	})
}

func (g *Gate) change(name types.NamespacedName, now time.Time, change func(*config)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g.configNamed(name))
	g.update(name, now)
}

// RetryAfter is the time before which the provider asked not to be called; zero if there is none. It is forgotten some
// time after it has passed.
func (g *Gate) RetryAfter(name types.NamespacedName) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.configs[name]; c != nil {
		return c.retryAfter
	}
	return time.Time{}
}

// Counts returns how many chats call the ChatModelConfig, and how many wait for it. A chat that has entered counts as
// calling.
func (g *Gate) Counts(name types.NamespacedName) (calling, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.configs[name]
	if c == nil {
		return 0, 0
	}
	return c.calling, len(c.waiting)
}

// Enter reserves a place for a call of the chat and returns nil, or returns what limits it. Hold, Wait or Leave must
// follow in both cases. Report a call that has ended with Leave before the chat enters again: a call that is still
// known as under way is replaced, without its tokens.
func (g *Gate) Enter(call Call, now time.Time) *Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.remove(call.Chat)
	call.keepSince(before)
	c := g.configNamed(call.Config)
	c.prune(now)
	held := c.limit(c.demandOf(&call), now)
	switch {
	case held.Reason == "":
		g.add(&entry{Call: call, state: reserved, start: now})
	case before == nil || before.state == reserved:
		g.add(&entry{Call: call, state: refused, until: held.Until})
	default: // It waits or calls as before.
		before.until, before.requeued = held.Until, false
		g.add(before)
	}
	g.updateBoth(before, call.Config, now)
	if held.Reason == "" {
		return nil
	}
	return &held
}

// Hold records that a call is under way, whatever the limits are. It is a request of the time at which it started.
func (g *Gate) Hold(call Call, now time.Time) { g.record(call, calling, now) }

// Wait records that the chat waits for the ChatModelConfig. Call Leave for a chat that waits for something else: a
// place that it does not use stays free for it.
func (g *Gate) Wait(call Call, now time.Time) { g.record(call, waiting, now) }

func (g *Gate) record(call Call, state state, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.chats[call.Chat]; e != nil && e.state == state && e.equal(&call) {
		return
	}
	before := g.remove(call.Chat)
	call.keepSince(before)
	next := &entry{Call: call, state: state}
	if before != nil && state == waiting {
		next.until = before.until
		next.requeued = before.Config == call.Config && (before.requeued || before.state == reserved)
	}
	g.add(next)
	g.updateBoth(before, call.Config, now)
}

// Leave records that the chat neither calls nor waits. tokens are what its call used; zero if that is not known: the
// call then counts no tokens.
func (g *Gate) Leave(chat types.NamespacedName, tokens int64, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.remove(chat)
	if e == nil {
		return
	}
	if e.state == calling && tokens > 0 {
		g.configNamed(e.Config).tokens.add(now, chat, tokens)
	}
	g.update(e.Config, now)
}
