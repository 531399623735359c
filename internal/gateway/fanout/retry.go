// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// LastRetry is the longest pause of Backoff.
const LastRetry = time.Second

// Backoff are the pauses before what failed while a chat is followed is tried again: 50 ms, and twice as long each time
// up to LastRetry.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Cap: LastRetry, Steps: math.MaxInt}
}
