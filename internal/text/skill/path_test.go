// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"strings"
	"testing"
)

func TestAPathStaysWithinItsSkill(t *testing.T) {
	for file, want := range map[string]string{
		"SKILL.md": "SKILL.md", "scripts/fill.py": "scripts/fill.py", "./a/b": "a/b", "a b/ü.md": "a b/ü.md",
		"a..b/c.": "a..b/c.",
		"":        "", ".": "", "./": "", "/etc/passwd": "", "..": "", "../x": "", "a/../b": "", "a/..": "",
		"a//b": "", "a/": "",
		".env": "", "a/.git/config": "", "./.env": "", `a\b`: "", "a\x00b": "", "a\nb": "", "\xff": "",
		strings.Repeat("a", maxPath+1): "",
	} {
		got, err := CheckPath(file)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.80q is %q, %v; want %q", file, got, err, want)
		}
	}
}
