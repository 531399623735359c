// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// asManager is the variable that makes the test binary the manager.
const asManager = "PARLEY_TEST_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestArgumentThatIsNoFlagIsRefused(t *testing.T) {
	manager := exec.CommandContext(t.Context(), os.Args[0], "--recordings", "false", "--mcp-hosts=mcp.example.com")
	manager.Env = append(os.Environ(), asManager+"=true")
	out, err := manager.CombinedOutput()
	if err == nil {
		t.Error("the manager ends without an error")
	}
	check.Contains(t, string(out), `unexpected argument "false"`)
}
