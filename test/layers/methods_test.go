// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"go/ast"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// maxMethods is how many methods a type may have, those of the types of its package that it embeds included.
const maxMethods = 25

// manyMethods are the types that have more, with the number that they may not exceed.
var manyMethods = map[string]int{
	"internal/chat/plan.action":      38,
	"internal/chat/plan.attempt":     44,
	"internal/chat/plan.captions":    31,
	"internal/chat/plan.compaction":  36,
	"internal/chat/plan.cut":         30,
	"internal/chat/plan.modelChoice": 38,
	"internal/chat/plan.queue":       35,
	"internal/chat/plan.report":      32,
	"internal/chat/plan.retention":   29,
	"internal/chat/plan.retry":       28,
	"internal/chat/plan.steering":    30,
	"internal/chat/plan.turn":        47,
	"internal/cli.printer":           34,
	"internal/cli.session":           45,
	"test/bench.bench":               72,
	"test/model/reference.Chat":      118,
	"test/soak.chaos":                27,
}

func TestTypesHaveFewMethods(t *testing.T) {
	packages := map[string]map[string]*methodSet{}
	for _, dir := range []string{"api", "client", "cmd", "controllers", "internal", "plugins", "test"} {
		err := filepath.WalkDir("../../"+dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			in := strings.TrimPrefix(filepath.Dir(path), "../../")
			if packages[in] == nil {
				packages[in] = map[string]*methodSet{}
			}
			addMethods(packages[in], parsed(t, path))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	unused := maps.Clone(manyMethods)
	for in, types := range packages {
		for name := range types {
			have, ceiling := len(methodsOf(types, name)), max(maxMethods, manyMethods[in+"."+name])
			if have > ceiling {
				t.Errorf("%s.%s has %d methods, and may have %d: give a part of it a type", in, name, have, ceiling)
			}
			if have > maxMethods {
				delete(unused, in+"."+name)
			}
		}
	}
	for name := range unused {
		t.Errorf("%s has at most %d methods: remove it from the table", name, maxMethods)
	}
}

// methodSet is what a type declares: its methods, and the types of its package that it embeds.
type methodSet struct{ methods, embedded []string }

func addMethods(types map[string]*methodSet, file *ast.File) {
	of := func(name string) *methodSet {
		if types[name] == nil {
			types[name] = &methodSet{}
		}
		return types[name]
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv != nil {
				receiver := of(localType(decl.Recv.List[0].Type))
				receiver.methods = append(receiver.methods, decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					of(spec.Name.Name).embedded = embeddedIn(spec.Type)
				}
			}
		}
	}
}

// embeddedIn are the types of the package that a struct embeds.
func embeddedIn(e ast.Expr) (names []string) {
	structure, ok := e.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range structure.Fields.List {
		if name := localType(field.Type); len(field.Names) == 0 && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// localType is the name of a type of the package, or of what it points to; empty for one of another package.
func localType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return localType(e.X)
	case *ast.IndexExpr:
		return localType(e.X)
	case *ast.IndexListExpr:
		return localType(e.X)
	}
	return ""
}

// methodsOf are the methods of a type, those of what it embeds included.
func methodsOf(types map[string]*methodSet, name string) map[string]bool {
	all := map[string]bool{}
	var add func(name string)
	seen := map[string]bool{}
	add = func(name string) {
		if types[name] == nil || seen[name] {
			return
		}
		seen[name] = true
		for _, method := range types[name].methods {
			all[method] = true
		}
		for _, embedded := range types[name].embedded {
			add(embedded)
		}
	}
	add(name)
	return all
}

func TestMethodsOfEmbeddedTypesCount(t *testing.T) {
	types := map[string]*methodSet{}
	addMethods(types, parsedSource(t, `package x
type outer struct { *inner; field; other.Type }
type inner struct { list[int]; *inner; outer outer }
type list[T any] []T
func (o *outer) one() {}
func (o outer) two() {}
func (i *inner) two() {}
func (i *inner) three() {}
func (l list[T]) four() {}`))
	for name, want := range map[string]int{"outer": 4, "inner": 3, "list": 1, "other": 0} {
		if got := len(methodsOf(types, name)); got != want {
			t.Errorf("%s has %d methods, not %d", name, got, want)
		}
	}
}
