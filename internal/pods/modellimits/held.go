// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modellimits

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Reason is the kind of a limit.
type Reason string

// Reasons why a chat waits.
const (
	RetryAfter        Reason = "RetryAfter"
	ConcurrentCalls   Reason = "ConcurrentCalls"
	RequestsPerMinute Reason = "RequestsPerMinute"
	TokensPerMinute   Reason = "TokensPerMinute"
)

// Held is the limit that keeps a chat from calling.
type Held struct {
	Config types.NamespacedName
	Reason Reason
	// Limit is the number that the ChatModelConfig allows; zero for RetryAfter.
	Limit int64
	// RetryAfter is the time before which the provider asked not to be called. Calls start slowly after it.
	RetryAfter time.Time
	// Until is when time alone may end the limit: the chat must then call Enter again, because Requeue does not return
	// it. Zero: only an event ends it, and Requeue returns the chat.
	Until time.Time
}

// orLater returns the limit that lasts longer. One that no time ends lasts longest.
func (h Held) orLater(other Held) Held {
	if h.Reason == "" || !h.Until.IsZero() && (other.Until.IsZero() || other.Until.After(h.Until)) {
		return other
	}
	return h
}

// isShorterThan reports whether a chat can enter now, or sooner than the time at which it looks again; zero: it waits
// for an event.
func (h Held) isShorterThan(until time.Time) bool {
	return h.Reason == "" || !h.Until.IsZero() && (until.IsZero() || h.Until.Before(until))
}

// String is one sentence of state, and what to do. It does not change while time alone passes.
func (h *Held) String() string {
	allows := "ChatModelConfig " + h.Config.Name + " allows "
	switch h.Reason {
	case ConcurrentCalls:
		return allows + count(h.Limit, "concurrent call") + " (spec.limits.concurrentCalls): wait until one ends, or raise it"
	case RequestsPerMinute:
		return allows + count(h.Limit, "request") + " per minute (spec.limits.requestsPerMinute): wait, or raise it"
	case TokensPerMinute:
		return allows + count(h.Limit, "token") + " per minute (spec.limits.tokensPerMinute): wait, or raise it"
	}
	return fmt.Sprintf("The provider of ChatModelConfig %s asked to wait until %s: then calls start again, the first "+
		"alone", h.Config.Name, h.RetryAfter.UTC().Format(time.RFC3339))
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
