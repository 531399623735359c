// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writes are the methods of a client, or of one of its subresources, that change something.
var writes = []string{"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf", "Status", "SubResource"}

// receivers are the names of what gathers: a reconciler, or the gatherer of one.
var receivers = []string{"r", "g"}

// TestGatherOnlyReads holds the first stroke of a reconcile to its word: a file of a controller that gathers neither
// calls what writes, nor a method of the reconciler that another file has, which might.
func TestGatherOnlyReads(t *testing.T) {
	gathers, err := filepath.Glob("../../controllers/*/gather*.go")
	if err != nil || len(gathers) == 0 {
		t.Fatalf("found %d files: %v", len(gathers), err)
	}
	for _, path := range gathers {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		others := methodsElsewhere(t, path)
		ast.Inspect(parsed(t, path), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if slices.Contains(writes, selector.Sel.Name) {
				t.Errorf("%s calls %s", path, selector.Sel.Name)
			}
			if receiver, ok := selector.X.(*ast.Ident); ok && slices.Contains(receivers, receiver.Name) &&
				slices.Contains(others, selector.Sel.Name) {
				t.Errorf("%s calls %s of a file that does not gather", path, selector.Sel.Name)
			}
			return true
		})
	}
}

// methodsElsewhere are the methods that the files of the package have which do not gather.
func methodsElsewhere(t *testing.T, gather string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(gather), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if base := filepath.Base(path); strings.HasPrefix(base, "gather") || strings.HasSuffix(base, "_test.go") {
			continue
		}
		for _, decl := range parsed(t, path).Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
