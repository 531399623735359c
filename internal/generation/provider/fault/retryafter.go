// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/http"
	"regexp"
	"strconv"
	"time"

	"parley.dev/parley/api/v1beta1"
)

// shouldRetry is whether OpenAI or Anthropic wants a retry; nil: unknown.
func shouldRetry(headers map[string]string) *bool {
	should, err := strconv.ParseBool(headers["x-should-retry"])
	if err != nil {
		return nil
	}
	return &should
}

// waitInHeaders is how long the provider asks to wait, at most v1beta1.MaxRetryAfter; 0: unknown. The headers
// x-ratelimit-reset-* do not help: there is one for each limit, and none names the one that was hit.
func waitInHeaders(headers map[string]string, now time.Time) time.Duration {
	if wait := parseWait(headers["retry-after-ms"], time.Millisecond); wait > 0 {
		return wait
	}
	after := headers["retry-after"]
	if wait := parseWait(after, time.Second); wait > 0 {
		return wait
	}
	if at, err := http.ParseTime(after); err == nil && !now.IsZero() {
		return clampWait(at.Sub(now))
	}
	return 0
}

// parseWait reads a number of units, at most v1beta1.MaxRetryAfter; 0 for everything that is no such number.
func parseWait(number string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) { // Also not a number.
		return 0
	}
	if n >= float64(v1beta1.MaxRetryAfter/unit) {
		return v1beta1.MaxRetryAfter
	}
	return time.Duration(n * float64(unit))
}

// clampWait bounds a wait that the provider asks for.
func clampWait(wait time.Duration) time.Duration {
	return max(0, min(wait, v1beta1.MaxRetryAfter))
}

// waitWords are OpenAI's words for how long to wait. Within a stream there are no headers for it.
var waitWords = regexp.MustCompile(`\btry again in (\d{1,6}(?:\.\d{1,6})?) ?(ms|s)\b`)

// waitInText is how long the provider's message, in small letters, asks to wait; 0: unknown.
func waitInText(text string) time.Duration {
	m := waitWords.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	if m[2] == "ms" {
		return parseWait(m[1], time.Millisecond)
	}
	return parseWait(m[1], time.Second)
}
