// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// Not parallel: it changes how the process handles a signal.
func TestChildrenDoNotInheritIgnoredSignals(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	handleIgnored()
	status, err := exec.CommandContext(t.Context(), "sed", "-n", "s/^SigIgn:[[:space:]]*//p", "/proc/self/status").Output()
	if err != nil {
		t.Fatal(err)
	}
	if mask := strings.TrimSpace(string(status)); strings.ContainsAny(mask[len(mask)-1:], "13579bdf") {
		t.Errorf("a child ignores SIGHUP: SigIgn is %s", mask)
	}
}
