// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import "time"

// RefusedError says that the API server refuses a generation pod, or what it needs.
type RefusedError struct {
	// Words are the API server's.
	Words string
	// Until is when it is asked again.
	Until time.Time
}

// Error implements error.
func (e *RefusedError) Error() string { return "the API server refuses a generation pod: " + e.Words }
