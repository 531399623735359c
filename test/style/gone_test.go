// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryControllerIgnoresWhatIsGone holds that no controller fails because an object is deleted during a pass.
func TestEveryControllerIgnoresWhatIsGone(t *testing.T) {
	files, err := filepath.Glob("../../controllers/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	built := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(parsed(t, path), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "Complete" && method.Sel.Name != "Build" {
				return true
			}
			built++
			if arg := types.ExprString(call.Args[0]); !strings.HasPrefix(arg, "requeue.IgnoreGone(") {
				t.Errorf("%s builds a controller of %s: wrap it in requeue.IgnoreGone", path, arg)
			}
			return true
		})
	}
	if built == 0 {
		t.Error("no controller was found")
	}
}
