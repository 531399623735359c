// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package style holds the rules of what people read: names, texts, pages, and how large a type may be. It reads the
// sources, and loads no packages: test/layers has the rules of imports.
package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dirs have all Go files of the project.
var dirs = []string{"api", "client", "cmd", "config", "controllers", "hack", "internal", "plugins", "test"}

// eachFile calls do with each Go file below the folders.
func eachFile(t *testing.T, dirs []string, do func(path string)) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") {
				do(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// eachSource calls do with each Go file below the folders that is no test.
func eachSource(t *testing.T, dirs []string, do func(path string)) {
	t.Helper()
	eachFile(t, dirs, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			do(path)
		}
	})
}

// header is at the beginning of each Go file, or below its build tags.
const header = "// Copyright The Parley Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n"

func TestFilesHaveLicenseHeader(t *testing.T) {
	eachFile(t, dirs, func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), header) && !strings.Contains(string(text), "\n\n"+header) {
			t.Errorf("%s does not begin with\n%s", path, header)
		}
	})
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	return parsedFrom(t, path, nil)
}

func parsedSource(t *testing.T, source string) *ast.File {
	t.Helper()
	return parsedFrom(t, "source.go", source)
}

func parsedFrom(t *testing.T, path string, source any) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
