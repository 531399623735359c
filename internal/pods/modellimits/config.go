// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modellimits

import (
	"math/bits"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// minute is how long a start and the tokens of an ended call count.
const minute = time.Minute

// rampSeconds is how long calls start slowly after retryAfter: k seconds after it, at most 2^k have started.
const rampSeconds = 10

// config is what the gate knows of a ChatModelConfig.
type config struct {
	name       types.NamespacedName
	limits     Limits
	retryAfter time.Time
	// calling are the calls under way and the reserved places.
	calling int
	// estimates are their tokens.
	estimates int64
	// starts are the requests of the last minute, those of reserved places included.
	starts window
	// tokens of the calls that ended in the last minute.
	tokens window
	// waiting chats in their order.
	waiting []*entry
}

// demand is what a chat needs in order to enter.
type demand struct {
	// rank is the number of chats that come before it.
	rank int
	// tokens are its estimate and theirs.
	tokens int64
}

func (c *config) demandOf(call *Call) demand {
	d := demand{tokens: call.Tokens}
	for _, e := range c.waiting {
		if e.compare(call) >= 0 {
			break
		}
		if !e.Blocked || e.Sub == call.Sub {
			d.tokens += e.Tokens
			d.rank++
		}
	}
	return d
}

// limit returns the limit that keeps a chat from entering, of several the one that lasts longest. Its Reason is empty
// if the chat can enter.
func (c *config) limit(d demand, now time.Time) Held {
	if n := int64(c.limits.ConcurrentCalls); n > 0 && int64(c.calling+d.rank) >= n {
		return Held{Config: c.name, Reason: ConcurrentCalls, Limit: n} // No time ends it.
	}
	held := c.retryLimit(d, now)
	if n := int64(c.limits.RequestsPerMinute); n > 0 {
		if excess := c.starts.sum + int64(d.rank) + 1 - n; excess > 0 {
			until := c.starts.until(excess)
			if until.IsZero() { // Calls that come before it have yet to start.
				until = now.Add(minute)
			}
			held = held.orLater(Held{Config: c.name, Reason: RequestsPerMinute, Limit: n, Until: until})
		}
	}
	if n := c.limits.TokensPerMinute; n > 0 {
		excess := c.tokens.sum + c.estimates + d.tokens - n
		if d.rank == 0 && c.calling == 0 { // It can enter when all tokens have expired, however large it is.
			excess = min(excess, c.tokens.sum)
		}
		if excess > 0 {
			held = held.orLater(Held{Config: c.name, Reason: TokensPerMinute, Limit: n, Until: c.tokens.until(excess)})
		}
	}
	return held
}

// retryLimit is the wait that the provider asked for, and the ramp after it.
func (c *config) retryLimit(d demand, now time.Time) Held {
	if c.retryAfter.IsZero() {
		return Held{}
	}
	before := c.starts.since(c.retryAfter) + d.rank
	seconds := min(bits.Len(uint(before)), rampSeconds) // The first with 2^seconds > before.
	held := Held{Config: c.name, Reason: RetryAfter, RetryAfter: c.retryAfter,
		Until: c.retryAfter.Add(time.Duration(seconds) * time.Second)}
	if !now.Before(held.Until) {
		return Held{}
	}
	return held
}

// delay records that the provider asked not to be called before a time.
func (c *config) delay(until time.Time) {
	if until.After(c.retryAfter) {
		c.retryAfter = until
	}
}

// prune forgets what no longer counts.
func (c *config) prune(now time.Time) {
	c.starts.prune(now)
	c.tokens.prune(now)
	if !now.Before(c.retryAfter.Add(rampSeconds * time.Second)) {
		c.retryAfter = time.Time{}
	}
}

func (c *config) isEmpty() bool {
	return c.limits == Limits{} && c.retryAfter.IsZero() && c.calling == 0 && len(c.waiting) == 0
}

func (c *config) count(e *entry, n int) {
	c.calling += n
	c.estimates += int64(n) * e.Tokens
}

func (c *config) find(e *entry) (int, bool) {
	return slices.BinarySearchFunc(c.waiting, e, func(a, b *entry) int { return a.compare(&b.Call) })
}
