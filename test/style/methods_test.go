// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"maps"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module begins the import path of each package.
const module = "parley.dev/parley/"

// maxMethods is how many methods a type may have, those of the types of this module that it embeds included.
const maxMethods = 25

// manyMethods are the types that have more, with the number that they may not exceed.
var manyMethods = map[string]int{
	"test/bench.bench":          72,
	"test/model/reference.Chat": 118,
}

func TestTypesHaveFewMethods(t *testing.T) {
	types := typesByName{}
	eachSource(t, []string{"api", "client", "cmd", "controllers", "internal", "plugins", "test"}, func(path string) {
		types.add(strings.TrimPrefix(filepath.Dir(path), "../../"), parsed(t, path))
	})
	unused := maps.Clone(manyMethods)
	for name := range types {
		have, ceiling := len(types.methodsOf(name)), max(maxMethods, manyMethods[name])
		if have > ceiling {
			t.Errorf("%s has %d methods, and may have %d: give a part of it a type", name, have, ceiling)
		}
		if have > maxMethods {
			delete(unused, name)
		}
	}
	for name := range unused {
		t.Errorf("%s has at most %d methods: remove it from the table", name, maxMethods)
	}
}

// typesByName are the types of the module by their directory and name, such as internal/text/skill.Skill.
type typesByName map[string]*declaredType

// declaredType is what a type declares: its methods, and the names of the types that it embeds.
type declaredType struct{ methods, embedded []string }

func (t typesByName) of(name string) *declaredType {
	if t[name] == nil {
		t[name] = &declaredType{}
	}
	return t[name]
}

// add adds the types and methods of a file in a directory.
func (t typesByName) add(dir string, file *ast.File) {
	imports := map[string]string{"": dir}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // The parser has done so.
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = strings.TrimPrefix(imported, module)
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv != nil {
				receiver := t.of(typeName(decl.Recv.List[0].Type, imports))
				receiver.methods = append(receiver.methods, decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					t.of(dir + "." + spec.Name.Name).embedded = embeddedIn(spec.Type, imports)
				}
			}
		}
	}
}

// embeddedIn are the types that a struct embeds.
func embeddedIn(e ast.Expr, imports map[string]string) (names []string) {
	structure, ok := e.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range structure.Fields.List {
		if len(field.Names) == 0 {
			names = append(names, typeName(field.Type, imports))
		}
	}
	return names
}

// typeName is the name of a type, or of what it points to, as typesByName has it.
func typeName(e ast.Expr, imports map[string]string) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return imports[nameOf(e.X)] + "." + e.Sel.Name
	case *ast.StarExpr:
		return typeName(e.X, imports)
	case *ast.IndexExpr:
		return typeName(e.X, imports)
	case *ast.IndexListExpr:
		return typeName(e.X, imports)
	}
	return imports[""] + "." + nameOf(e)
}

// methodsOf are the methods that can be called on a type, those of what it embeds included.
func (t typesByName) methodsOf(name string) map[string]bool {
	all, seen, dir := map[string]bool{}, map[string]bool{}, strings.TrimSuffix(name, path.Ext(name))
	var add func(embedded string)
	add = func(embedded string) {
		if t[embedded] == nil || seen[embedded] {
			return
		}
		seen[embedded] = true
		for _, method := range t[embedded].methods {
			if ast.IsExported(method) || strings.TrimSuffix(embedded, path.Ext(embedded)) == dir {
				all[method] = true
			}
		}
		for _, next := range t[embedded].embedded {
			add(next)
		}
	}
	add(name)
	return all
}

func TestMethodsOfEmbeddedTypesCount(t *testing.T) {
	types := typesByName{}
	types.add("internal/other", parsedSource(t, `package other
type Type struct{}
func (Type) Five() {}
func (Type) six() {}`))
	types.add("internal/x", parsedSource(t, `package x
import "parley.dev/parley/internal/other"
type outer struct { *inner; field; other.Type }
type inner struct { list[int]; *inner; named outer }
type list[T any] []T
func (o *outer) one() {}
func (o outer) two() {}
func (i *inner) two() {}
func (i *inner) three() {}
func (l list[T]) four() {}`))
	for name, want := range map[string]int{"outer": 5, "inner": 3, "list": 1, "field": 0} {
		if got := len(types.methodsOf("internal/x." + name)); got != want {
			t.Errorf("%s has %d methods, not %d", name, got, want)
		}
	}
}
