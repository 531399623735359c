// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePageSaysWhatTheStateMachineDoes(t *testing.T) {
	if err := run("../../../docs/reference/status.md", true); err != nil {
		t.Error(err)
	}
}

func TestCheckFailsOnADifferenceAndWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status.md")
	if err := run(path, true); err == nil {
		t.Error("a missing page passed")
	}
	if err := run(path, false); err != nil {
		t.Fatal(err)
	}
	if err := run(path, true); err != nil {
		t.Errorf("a page just written: %v", err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(path, true); err == nil {
		t.Error("a different page passed")
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != "other" {
		t.Errorf("the check wrote %q, %v", have, err)
	}
}

func TestTheDiagramDrawsAMoveOnce(t *testing.T) {
	var b strings.Builder
	renderDiagram(&b)
	seen := map[string]bool{}
	for line := range strings.SplitSeq(b.String(), "\n") {
		arrow, _, found := strings.Cut(line, ":")
		if found && seen[arrow] {
			t.Errorf("%s is drawn twice", arrow)
		}
		seen[arrow] = true
	}
	for _, want := range []string{"    [*] --> Running", "    Running --> Waiting", "    Invalid --> Error"} {
		if !seen[want] {
			t.Errorf("%s is not drawn", want)
		}
	}
}
