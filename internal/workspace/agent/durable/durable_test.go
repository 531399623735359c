// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"parley.dev/parley/internal/workspace/agent/durable"
	"parley.dev/parley/test/kit/check"
)

func TestAFileIsReplacedWithoutATrace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	check.OK(t, os.WriteFile(path+".unfinished", []byte("what a crash has left, which is longer"), 0o600))
	for _, content := range []string{"first", "second", ""} {
		check.OK(t, durable.Write(path, []byte(content), 0o600))
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("there is %q: %v, want %q", got, err, content)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("there are %v: %v", entries, err)
		}
	}
}

func TestAFileThatCannotBeReplacedStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	check.OK(t, durable.Write(path, []byte("first"), 0o600))
	check.OK(t, os.MkdirAll(filepath.Join(path+".unfinished", "in the way"), 0o700))
	if err := durable.Write(path, []byte("second"), 0o600); err == nil {
		t.Error("nothing is said")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("there is %q: %v", got, err)
	}
	if err := durable.Write(filepath.Join(dir, "missing", "file"), nil, 0o600); err == nil {
		t.Error("nothing is said of a directory that is not there")
	}
}

func TestOnlyWhatIsUnfinishedLooksSo(t *testing.T) {
	for name, want := range map[string]bool{"a.unfinished": true, "a.unfinished.begun": false, "a": false, "unfinished": false} {
		check.Equal(t, name, want, durable.Unfinished(name))
	}
}
