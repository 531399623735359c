// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"crypto/x509"
	"testing"
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

// HeaderTimeout is how long an answer's headers may take.
const HeaderTimeout = headerTimeout

// Trusted are the authorities that a client of the settings trusts; nil: those of the system.
func Trusted(s Settings) *x509.CertPool { return s.trusted() }
