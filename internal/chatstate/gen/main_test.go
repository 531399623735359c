// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chatstate"
)

func TestThePageSaysWhatTheStateMachineDoes(t *testing.T) {
	if err := run("../../../docs/status.md", true); err != nil {
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

func TestEveryPhaseIsAWordOfTheAPI(t *testing.T) {
	words := map[chatstate.Phase]v1alpha1.ChatPhase{
		chatstate.PhaseWaiting:        v1alpha1.ChatWaiting,
		chatstate.PhaseRunning:        v1alpha1.ChatRunning,
		chatstate.PhaseInterrupting:   v1alpha1.ChatInterrupting,
		chatstate.PhaseRequiresAction: v1alpha1.ChatRequiresAction,
		chatstate.PhaseError:          v1alpha1.ChatError,
	}
	for _, s := range chatstate.States() {
		if s != chatstate.None && s != chatstate.Invalid && string(words[s.Phase]) != string(s.Phase) {
			t.Errorf("phase %s of state %s is called %q in the API", s.Phase, s, words[s.Phase])
		}
	}
}
