// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localnode keeps tests that kill processes of a node to clusters whose node is this machine.
package localnode

import (
	"os"
	"testing"
)

// variable of the environment is set where the cluster is the project's own: its node is this machine.
const variable = "PARLEY_LOCAL_NODE"

// Needed skips the test where its cluster's node is another machine.
func Needed(t testing.TB) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("it kills processes of the node, and the cluster is not the local one, whose node is this machine: " +
			"run it without USE_CURRENT_CONTEXT")
	}
}
