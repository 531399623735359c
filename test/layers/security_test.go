// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// shownBy is a cell of a table that names tests, "`TestA`, `TestB` of `package`", several with semicolons between.
	shownBy   = regexp.MustCompile("(?m)\\| ((?:`(?:Test|Fuzz)\\w+`[^|]*)) \\|$")
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	ofPackage = regexp.MustCompile("of `([\\w/]+)`$")
)

// TestSecurityPageNamesExistingTests holds what the page says to be shown to its tests.
func TestSecurityPageNamesExistingTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/explanation/security.md")
	if err != nil {
		t.Fatal(err)
	}
	cells := shownBy.FindAllStringSubmatch(string(page), -1)
	if len(cells) < 10 {
		t.Fatalf("found only %d lines with tests", len(cells))
	}
	for _, cell := range cells {
		for group := range strings.SplitSeq(cell[1], "; ") {
			of := ofPackage.FindStringSubmatch(group)
			if of == nil {
				t.Errorf("%q names no package", group)
				continue
			}
			source := testsOf(t, of[1])
			for _, name := range namedTest.FindAllStringSubmatch(group, -1) {
				if !strings.Contains(source, "\nfunc "+name[1]+"(") {
					t.Errorf("%s has no test %s", of[1], name[1])
				}
			}
		}
	}
}

// testsOf is the source of a package's tests.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(source)
	}
	return all.String()
}
