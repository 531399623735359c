// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// reasonsOf is at which argument each function takes the reason or the action of a condition or an Event; the types of
// the API are taken by their conversions.
var reasonsOf = map[string][]int{
	"Done": {0}, "Working": {0}, "Failed": {0}, "notice": {0, 1}, "Eventf": {3, 4},
	"ConditionReason": {0}, "EventReason": {0}, "EventAction": {0},
}

// TestReasonsAreConstantsOfTheAPI holds that no reason of a condition and no reason or action of an Event is made up
// where it is used: people search for them, and the pages of docs list them.
func TestReasonsAreConstantsOfTheAPI(t *testing.T) {
	eachSource(t, []string{"controllers", "internal"}, func(path string) {
		for _, literal := range literalReasons(parsed(t, path)) {
			t.Errorf("%s names the reason %s", path, literal)
		}
	})
}

func literalReasons(file *ast.File) (literals []string) {
	check := func(e ast.Expr) {
		if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING && literal.Value != `""` {
			literals = append(literals, literal.Value)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			for i, arg := range n.Args {
				if slices.Contains(reasonsOf[nameOf(n.Fun)], i) {
					check(arg)
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Reason" {
				check(n.Value)
			}
		}
		return true
	})
	return literals
}

func nameOf(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func TestALiteralReasonIsFound(t *testing.T) {
	source := `package x
var _ = Condition{Reason: "One"}
func f() { conditions.Done("Two", "m"); p.notice(reason, "Three", "m"); Failed(ReasonFour, "m"); Done("", "m") }`
	if got := literalReasons(parsedSource(t, source)); !slices.Equal(got, []string{`"One"`, `"Two"`, `"Three"`}) {
		t.Errorf("found %v", got)
	}
}
