// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCheckFailsOnADifferenceAndWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	all := []file{{path, func() ([]byte, error) { return []byte("page"), nil }}}
	if err := run(all, true); err == nil {
		t.Error("a missing page passed")
	}
	if err := run(all, false); err != nil {
		t.Fatal(err)
	}
	if err := run(all, true); err != nil {
		t.Errorf("a page just written: %v", err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(all, true); err == nil {
		t.Error("a different page passed")
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != "other" {
		t.Errorf("the check wrote %q, %v", have, err)
	}
}
