// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modellimits

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Requeue waits for chats to reconcile, and returns them in the order in which they can enter. It returns nil when the
// context ends.
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

// updateBoth updates the ChatModelConfig, and the one that the chat called or waited for before.
func (g *Gate) updateBoth(before *entry, name types.NamespacedName, now time.Time) {
	if before != nil && before.Config != name {
		g.update(before.Config, now)
	}
	g.update(name, now)
}

// update requeues the chats that can enter now, or sooner than Enter returned, and forgets what no longer counts. The
// caller holds mu, here and in the rest of this file.
func (g *Gate) update(name types.NamespacedName, now time.Time) {
	c := g.configs[name]
	if c == nil {
		return
	}
	c.prune(now)
	before := map[bool]demand{} // What comes before a chat, by Sub.
	for _, e := range c.waiting {
		d := before[e.Sub]
		d.tokens += e.Tokens
		if !e.Blocked && c.limit(d, now).isShorterThan(e.until) {
			g.requeue(e)
		}
		for _, sub := range []bool{false, true} {
			if !e.Blocked || e.Sub == sub {
				before[sub] = demand{before[sub].rank + 1, before[sub].tokens + e.Tokens}
			}
		}
	}
	if c.isEmpty() {
		delete(g.configs, name)
	}
}

func (g *Gate) requeue(e *entry) {
	if e.requeued {
		return
	}
	e.requeued = true
	g.pending = append(g.pending, e.Chat)
	select {
	case g.signal <- struct{}{}:
	default: // It has a value already.
	}
}

// setLimits requeues all that wait if the limits change.
func (g *Gate) setLimits(c *config, limits Limits) {
	if c.limits == limits {
		return
	}
	c.limits = limits
	for _, e := range c.waiting {
		if !e.Blocked { // Its status names another limit.
			g.requeue(e)
		}
	}
}
