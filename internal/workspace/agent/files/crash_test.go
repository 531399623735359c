// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
)

// death is what a step panics with in place of the agent's process.
type death struct{ step string }

// trial makes a change, and knows what it changes.
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

// steps are what a change does to the disk.
func (tr trial) steps(t *testing.T) (steps []string) {
	w := newWorkspace(t)
	tr.setUp(w)
	w.committer.before = func(step string) error { steps = append(steps, step); return nil }
	if _, err := tr.change(w); err != nil {
		t.Fatal(err)
	}
	w.expect(tr.after)
	return steps
}

// dies does something during which the agent dies. It reports whether it did.
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

// at does something in place of the step of a number, from 0 on.
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

func TestCrashAtAnyStepKeepsChangeAtomic(t *testing.T) {
	for name, tr := range trials {
		for number, step := range tr.steps(t) {
			t.Run(fmt.Sprintf("%s, at step %d, %s", name, number, step), func(t *testing.T) {
				t.Parallel()
				w := newWorkspace(t)
				tr.setUp(w)
				w.committer.before = at(number, die)
				if !dies(func() { _, _ = tr.change(w) }) {
					t.Fatal("the agent did not die")
				}
				w.open()
				tr.settled(w)
			})
		}
	}
}

func TestCrashDuringRecoveryKeepsChangeAtomic(t *testing.T) {
	tr := trials["edits of four files"]
	for number, step := range tr.steps(t) {
		t.Run(fmt.Sprintf("at step %d, %s", number, step), func(t *testing.T) {
			t.Parallel()
			again := 0
			for ; tr.diesTwice(t, number, again) && !t.Failed(); again++ {
			}
			if again == 0 && step != "write the record down" || t.Failed() {
				t.Errorf("it died %d times while putting things right", again)
			}
		})
	}
}

// diesTwice lets the agent die at one step of a change, and at another one of putting that right, if there are so many.
func (tr trial) diesTwice(t *testing.T, first, second int) bool {
	w := newWorkspace(t)
	tr.setUp(w)
	w.committer.before = at(first, die)
	dies(func() { _, _ = tr.change(w) })
	died := dies(func() { w.openWith(at(second, die)) })
	w.open()
	tr.settled(w)
	return died
}

// settled checks that a change was made or not, and that it is made once when it is asked for again.
func (tr trial) settled(w *workspace) {
	w.t.Helper()
	if got := w.all(); !maps.Equal(got, tr.before) && !maps.Equal(got, tr.after) {
		w.t.Errorf("there is %q", got)
	}
	first, err := tr.change(w)
	must(w.t, err)
	w.expect(tr.after)
	second, err := tr.change(w)
	must(w.t, err)
	if !reflect.DeepEqual(first, second) {
		w.t.Errorf("it was answered with %+v, and then with %+v", first, second)
	}
	w.expect(tr.after)
	if left, err := filepath.Glob(filepath.Join(w.state, "changes", "*"+string(begun))); err != nil || len(left) > 0 {
		w.t.Errorf("left are %q: %v", left, err)
	}
}

func TestAStepThatFailsLeavesAllOrNothing(t *testing.T) {
	for name, tr := range trials {
		for number, step := range tr.steps(t) {
			t.Run(fmt.Sprintf("%s, at step %d, %s", name, number, step), func(t *testing.T) {
				t.Parallel()
				w := newWorkspace(t)
				tr.setUp(w)
				w.committer.before = at(number, func(string) error { return syscall.EIO })
				_, err := tr.change(w)
				switch got := w.all(); {
				case step == "remove a leftover": // It is logged.
					if err != nil || !strings.Contains(w.log.String(), "leftover") {
						t.Errorf("got %v, and the log says %q", err, w.log.String())
					}
				case err == nil && !maps.Equal(got, tr.after), err != nil && !maps.Equal(got, tr.before):
					t.Errorf("got %v, and there is %q", err, got)
				case err != nil:
					refused(t, err, protocol.Internal, "input/output error")
				}
			})
		}
	}
}

func TestDiskFailureAtAnyStepIsRepairedLater(t *testing.T) {
	for name, tr := range trials {
		for number, step := range tr.steps(t) {
			t.Run(fmt.Sprintf("%s, from step %d on, %s", name, number, step), func(t *testing.T) {
				t.Parallel()
				w := newWorkspace(t)
				tr.setUp(w)
				broken := false
				w.committer.before = at(number, func(string) error { broken = true; return nil })
				count := w.committer.before
				w.committer.before = func(step string) error {
					_ = count(step)
					if broken {
						return syscall.EIO
					}
					return nil
				}
				_, err := tr.change(w)
				now := w.all()
				maps.DeleteFunc(now, func(name, _ string) bool { return strings.Contains(name, ".parley") })
				if err == nil && !maps.Equal(now, tr.after) {
					t.Errorf("nothing is said, and there is %q", now)
				}
				w.open()
				if got := w.all(); !maps.Equal(got, tr.before) && !maps.Equal(got, tr.after) {
					t.Errorf("there is %q", got)
				}
			})
		}
	}
}

// halfMade is a workspace whose agent died when it had replaced one file of four.
func halfMade(t *testing.T) (*workspace, trial) {
	t.Helper()
	w, tr := newWorkspace(t), trials["edits of four files"]
	tr.setUp(w)
	renames := 0
	w.committer.before = func(step string) error {
		if step == "rename" {
			if renames++; renames == 2 {
				return die(step)
			}
		}
		return nil
	}
	if !dies(func() { _, _ = tr.change(w) }) {
		t.Fatal("the agent did not die")
	}
	if w.all()["a"] != "new a\n" || w.all()["e"] != "old e\n" {
		t.Fatalf("there is %q", w.all())
	}
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
	if a := w.all()["a"]; a != "somebody else's\n" {
		t.Errorf("somebody else's file has become %q", a)
	}
	for name := range w.all() {
		if strings.Contains(name, ".parley") {
			t.Errorf("%q is left", name)
		}
	}
	if _, err := w.Write(t.Context(), "another", "a", "x"); err != nil {
		t.Errorf("another change: %v", err)
	}
}

func TestCrashDiscardsUncommittedChangeDespiteForeignEdit(t *testing.T) {
	w, tr := newWorkspace(t), trials["edits of four files"]
	tr.setUp(w)
	w.committer.before = func(step string) error {
		if step == "rename" {
			return die(step)
		}
		return nil
	}
	if !dies(func() { _, _ = tr.change(w) }) {
		t.Fatal("the agent did not die")
	}
	w.put("a", "somebody else's old a\n")
	w.open()
	if _, err := tr.change(w); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(tr.after)
	want["a"] = "somebody else's new a\n"
	w.expect(want)
}

func TestUnfinishedChangeWithBrokenRecordHasUnknownOutcome(t *testing.T) {
	for name, content := range map[string]string{"nothing": "", "no JSON": "\x00\x00", "of another kind": "[]"} {
		t.Run(name, func(t *testing.T) {
			w, tr := halfMade(t)
			records, err := filepath.Glob(filepath.Join(w.state, "changes", "*"))
			if err != nil || len(records) != 1 {
				t.Fatalf("there are %q: %v", records, err)
			}
			must(t, os.WriteFile(records[0], []byte(content), 0o600))
			w.open()
			_, err = tr.change(w)
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
	w.committer.before = func(step string) error {
		if step == "bring directories to the disk" {
			return nil
		}
		if step == "rename" && strings.HasPrefix(w.all()["a"], "new") {
			return die(step)
		}
		return nil
	}
	if !dies(func() { _, _ = w.Edit(t.Context(), "", request) }) {
		t.Fatal("the agent did not die")
	}
	w.open()
	w.expect(map[string]string{"a": "old\n", "b": "old\n"})
	if left, err := os.ReadDir(filepath.Join(w.state, "changes")); err != nil || len(left) > 0 {
		t.Errorf("left are %v: %v", left, err)
	}
}

func TestWithoutHardLinksOldContentIsCopied(t *testing.T) {
	w := newWorkspace(t)
	w.put("a", "old\n")
	must(t, os.Chmod(filepath.Join(w.dir, "a"), 0o640))
	must(t, w.committer.copy("a", "b"))
	w.expect(map[string]string{"a": "old\n", "b": "old\n"})
	if info, err := os.Stat(filepath.Join(w.dir, "b")); err != nil || info.Mode() != 0o640 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	if err := w.committer.copy("a", "b"); !errors.Is(err, os.ErrExist) {
		t.Errorf("onto another file: %v", err)
	}
}
