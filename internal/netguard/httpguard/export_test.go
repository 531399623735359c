// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"crypto/x509"
	"testing"
	"time"
)

// ShrinkLimits makes the limits of models' answers a sixteenth of what they are, until the test ends: with the race
// detector, reading an answer of 32 MiB takes seconds.
func ShrinkLimits(t *testing.T) {
	t.Helper()
	before := ModelLimits
	t.Cleanup(func() { ModelLimits = before })
	const part = 16
	ModelLimits.Error, ModelLimits.Event, ModelLimits.Stream = before.Error/part, before.Event/part, before.Stream/part
}

// PingSoon makes new clients check silent connections after a moment, until the test ends.
func PingSoon(t *testing.T) {
	t.Helper()
	after, timeout := pingAfter, pingTimeout
	t.Cleanup(func() { pingAfter, pingTimeout = after, timeout })
	pingAfter, pingTimeout = 100*time.Millisecond, time.Second
}

// HeaderTimeout is how long an answer's headers may take.
const HeaderTimeout = headerTimeout

// Trusted are the authorities that a client of the settings trusts; nil: those of the system.
func Trusted(s Settings) *x509.CertPool { return s.trusted() }
