// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retry says how long to wait before what failed while a chat is followed is tried again.
package retry

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Last is the longest pause of Backoff.
const Last = time.Second

// Backoff are the pauses before what failed while a chat is followed is tried again: 50 ms, and twice as long each time
// up to Last.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Cap: Last, Steps: math.MaxInt}
}
