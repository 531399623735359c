// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/x509"
	"testing"
)

// ShrinkLimits makes the limits of models' answers a sixteenth of what they are, until the test ends: with the race
// detector, reading an answer of 32 MiB takes seconds.
func ShrinkLimits(t *testing.T) {
	t.Helper()
	before := ofModels
	t.Cleanup(func() { ofModels = before })
	const part = 16
	ofModels = Limits{Error: before.Error / part, Event: before.Event / part,
		Stream: before.Stream / part}
}

// Trusted are the authorities that a client of the settings trusts; nil: those of the system.
func Trusted(s Settings) *x509.CertPool { return s.trusted() }
