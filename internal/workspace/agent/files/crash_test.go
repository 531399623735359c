// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// death is the panic of a step in which the agent dies.
type death struct{ step string }

// trial is a change, with the files before and after it.
type trial struct {
	setUp         func(*workspace)
	change        func(*workspace) (any, error)
	before, after map[string]string
}

var trials = map[string]trial{
	"edits of four files": {
		setUp: func(w *workspace) { w.put("a", "old a\n"); w.put("dir/b", "old b\n"); w.put("e", "old e\n") },
		change: func(w *workspace) (any, error) {
			return w.Edit(w.t.Context(), "chat-1-edit", edits(
				protocol.Edit{Path: "a", OldText: "old", NewText: "new"},
				protocol.Edit{Path: "made/too/c", NewText: "new c\n"},
				protocol.Edit{Path: "dir/b", OldText: "old", NewText: "new"},
				protocol.Edit{Path: "e", OldText: "old", NewText: "new"}))
		},
		before: map[string]string{"a": "old a\n", "dir/": "", "dir/b": "old b\n", "e": "old e\n"},
		after: map[string]string{"a": "new a\n", "dir/": "", "dir/b": "new b\n", "e": "new e\n", "made/": "",
			"made/too/": "", "made/too/c": "new c\n"},
	},
	"a new file": {
		setUp:  func(*workspace) {},
		change: func(w *workspace) (any, error) { return w.Write(w.t.Context(), "chat-1-write", "made/file", "new\n") },
		before: map[string]string{},
		after:  map[string]string{"made/": "", "made/file": "new\n"},
	},
	"a file with another content": {
		setUp:  func(w *workspace) { w.put("file", "old\n") },
		change: func(w *workspace) (any, error) { return w.Write(w.t.Context(), "chat-1-write", "file", "new\n") },
		before: map[string]string{"file": "old\n"},
		after:  map[string]string{"file": "new\n"},
	},
}

// steps of the change on the disk.
func (tr trial) steps(t *testing.T) (steps []string) {
	w := newWorkspace(t)
	tr.setUp(w)
	w.committer.before = func(step string) error { steps = append(steps, step); return nil }
	_, err := tr.change(w)
	check.OK(t, err)
	w.expect(tr.after)
	return steps
}

// eachStep runs a test for each step of each trial.
func eachStep(t *testing.T, test func(t *testing.T, tr trial, number int, step string)) {
	for name, tr := range trials {
		for number, step := range tr.steps(t) {
			t.Run(fmt.Sprintf("%s, at step %d, %s", name, number, step), func(t *testing.T) {
				t.Parallel()
				test(t, tr, number, step)
			})
		}
	}
}

// begin makes a workspace for the trial, which calls a function before each step.
func (tr trial) begin(t *testing.T, before func(step string) error) *workspace {
	w := newWorkspace(t)
	tr.setUp(w)
	w.committer.before = before
	return w
}

// dies reports whether the agent dies in a function.
func dies(do func()) (died bool) {
	defer func() {
		if what := recover(); what != nil {
			if _, ok := what.(death); !ok {
				panic(what)
			}
			died = true
		}
	}()
	do()
	return false
}

// crash makes the change, in which the agent must die.
func (tr trial) crash(w *workspace) {
	w.t.Helper()
	check.Equal(w.t, "the agent dies", true, dies(func() { _, _ = tr.change(w) }))
}

// at calls a function in place of the step of a number, from 0 on.
func at(number int, do func(step string) error) func(string) error {
	seen := 0
	return func(step string) error {
		if seen++; seen == number+1 {
			return do(step)
		}
		return nil
	}
}

func die(step string) error { panic(death{step}) }

// dieAtRename dies at the rename of a number, from 0 on.
func dieAtRename(number int) func(string) error {
	before := at(number, die)
	return func(step string) error {
		if step == "rename" {
			return before(step)
		}
		return nil
	}
}

func TestCrashDuringRecoveryKeepsChangeAtomic(t *testing.T) {
	eachStep(t, func(t *testing.T, tr trial, number int, step string) {
		again := 0
		for ; tr.diesTwice(t, number, again) && !t.Failed(); again++ {
		}
		if again == 0 && step != "store the record" {
			t.Error("it never died during recovery")
		}
	})
}

// diesTwice lets the agent die at one step of a change, and at one of the recovery, if there are as many.
func (tr trial) diesTwice(t *testing.T, first, second int) bool {
	w := tr.begin(t, at(first, die))
	tr.crash(w)
	died := dies(func() { w.openWith(at(second, die)) })
	w.open()
	tr.settled(w)
	return died
}

// settled checks that a change was made or not, and that repeated requests make it once.
func (tr trial) settled(w *workspace) {
	w.t.Helper()
	tr.isWhole(w, w.all())
	first, err := tr.change(w)
	check.OK(w.t, err)
	w.expect(tr.after)
	second, err := tr.change(w)
	check.OK(w.t, err)
	check.Equal(w.t, "answer", first, second)
	w.expect(tr.after)
	left, err := filepath.Glob(filepath.Join(w.state, "changes", "*"+string(begun)))
	check.OK(w.t, err)
	check.Equal(w.t, "unfinished records", nil, left)
}

// isWhole checks that all of a change was made, or nothing.
func (tr trial) isWhole(w *workspace, files map[string]string) {
	w.t.Helper()
	if !maps.Equal(files, tr.before) {
		check.Equal(w.t, "files", tr.after, files)
	}
}

func TestAStepThatFailsLeavesAllOrNothing(t *testing.T) {
	eachStep(t, func(t *testing.T, tr trial, number int, step string) {
		w := tr.begin(t, at(number, func(string) error { return syscall.EIO }))
		_, err := tr.change(w)
		switch {
		case step == "remove a temporary file": // It is logged.
			check.OK(t, err)
			check.Contains(t, w.log.String(), "temporary file")
		case err != nil:
			refused(t, err, protocol.Internal, "input/output error")
			w.expect(tr.before)
		default:
			w.expect(tr.after)
		}
	})
}

func TestDiskFailureAtAnyStepIsRepairedLater(t *testing.T) {
	eachStep(t, func(t *testing.T, tr trial, number int, _ string) {
		seen := 0
		w := tr.begin(t, func(string) error {
			if seen++; seen > number {
				return syscall.EIO
			}
			return nil
		})
		_, err := tr.change(w)
		now := w.all()
		maps.DeleteFunc(now, func(name, _ string) bool { return strings.Contains(name, ".parley") })
		if err == nil {
			check.Equal(t, "files", tr.after, now)
		}
		w.open()
		tr.isWhole(w, w.all())
	})
}

// halfMade is a workspace whose agent died after it replaced one file of four.
func halfMade(t *testing.T) (*workspace, trial) {
	t.Helper()
	tr := trials["edits of four files"]
	w := tr.begin(t, dieAtRename(1))
	tr.crash(w)
	check.Equal(t, "first file", "new a\n", w.all()["a"])
	check.Equal(t, "last file", "old e\n", w.all()["e"])
	return w, tr
}

func TestUnfinishedChangeWithForeignEditHasUnknownOutcome(t *testing.T) {
	w, tr := halfMade(t)
	w.put("a", "somebody else's\n")
	for range 2 { // It stays so over restarts.
		w.open()
		_, err := tr.change(w)
		refused(t, err, protocol.OutcomeUnknown, `"a"`, `"made/too/c"`, "Read")
	}
	check.Equal(t, "edited file", "somebody else's\n", w.all()["a"])
	for name := range w.all() {
		check.Lacks(t, name, ".parley")
	}
	_, err := w.Write(t.Context(), "another", "a", "x")
	check.OK(t, err)
}

func TestCrashDiscardsUncommittedChangeDespiteForeignEdit(t *testing.T) {
	tr := trials["edits of four files"]
	w := tr.begin(t, dieAtRename(0))
	tr.crash(w)
	w.put("a", "somebody else's old a\n")
	w.open()
	_, err := tr.change(w)
	check.OK(t, err)
	want := maps.Clone(tr.after)
	want["a"] = "somebody else's new a\n"
	w.expect(want)
}

func TestUnfinishedChangeWithBrokenRecordHasUnknownOutcome(t *testing.T) {
	for name, content := range map[string]string{"nothing": "", "no JSON": "\x00\x00", "of another kind": "[]"} {
		t.Run(name, func(t *testing.T) {
			w, tr := halfMade(t)
			check.OK(t, os.WriteFile(filepath.Join(w.state, "changes", "chat-1-edit.begun"), []byte(content), 0o600))
			w.open()
			_, err := tr.change(w)
			refused(t, err, protocol.OutcomeUnknown, "record is lost")
		})
	}
}

func TestChangeWithoutKeyIsRolledBackAfterCrash(t *testing.T) {
	w := newWorkspace(t)
	w.put("a", "old\n")
	w.put("b", "old\n")
	request := edits(protocol.Edit{Path: "a", OldText: "old", NewText: "new"},
		protocol.Edit{Path: "b", OldText: "old", NewText: "new"})
	w.committer.before = dieAtRename(1)
	check.Equal(t, "the agent dies", true, dies(func() { _, _ = w.Edit(t.Context(), "", request) }))
	check.Equal(t, "first file", "new\n", w.all()["a"])
	w.open()
	w.expect(map[string]string{"a": "old\n", "b": "old\n"})
	left, err := os.ReadDir(filepath.Join(w.state, "changes"))
	check.OK(t, err)
	check.Equal(t, "records", 0, len(left))
}

func TestWithoutHardLinksOldContentIsCopied(t *testing.T) {
	w := newWorkspace(t)
	w.put("a", "old\n")
	check.OK(t, os.Chmod(filepath.Join(w.dir, "a"), 0o640))
	check.OK(t, w.committer.copy("a", "b"))
	w.expect(map[string]string{"a": "old\n", "b": "old\n"})
	info, err := os.Stat(filepath.Join(w.dir, "b"))
	check.OK(t, err)
	check.Equal(t, "mode", 0o640, info.Mode())
	if err := w.committer.copy("a", "b"); !errors.Is(err, os.ErrExist) {
		t.Errorf("onto another file: %v", err)
	}
}
