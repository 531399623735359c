// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatlist_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

func TestDocsNameEveryRefusal(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/stream.md")
	check.OK(t, err)
	parsed, err := parser.ParseFile(token.NewFileSet(), "../refusal/refusal.go", nil, 0)
	check.OK(t, err)
	found := 0
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 {
			return true
		}
		if reason, ok := spec.Values[0].(*ast.BasicLit); ok && reason.Kind == token.STRING {
			found++
			check.Contains(t, string(page), "| `"+strings.Trim(reason.Value, `"`)+"` |")
		}
		return true
	})
	if found < 10 {
		t.Errorf("found only %d reasons", found)
	}
}
