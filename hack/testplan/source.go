// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// source is what the text of some Go files of a package shows.
type source struct {
	// concurrent says what makes the race detector necessary. It is empty if there is nothing.
	concurrent string
	// reads are the files and folders of the repository that string literals name.
	reads []string
	// literals are all string literals.
	literals []string
}

// concurrentImports are packages of the standard library that start goroutines, or that only programs with several
// goroutines need. A name that ends with a slash stands for all packages below it.
var concurrentImports = []string{
	"C", "net", "net/http", "net/http/", "net/rpc", "net/rpc/", "net/smtp", "os/exec", "os/signal", "sync", "sync/",
	"testing/synctest",
}

// sequentialImports are the packages of other modules that start no goroutine. A package that imports another one needs
// the race detector, so a new dependency needs no entry here.
var sequentialImports = []string{
	"github.com/dgryski/go-jump", "github.com/google/go-cmp/cmp", "github.com/google/go-cmp/cmp/", "golang.org/x/mod/",
	"k8s.io/api/", "k8s.io/apiextensions-apiserver/pkg/apis/", "k8s.io/apimachinery/pkg/api/",
	"k8s.io/apimachinery/pkg/apis/", "k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/runtime/",
	"k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/intstr", "k8s.io/apimachinery/pkg/util/json",
	"k8s.io/apimachinery/pkg/util/validation", "k8s.io/apimachinery/pkg/util/validation/", "sigs.k8s.io/yaml",
}

// concurrentNames are functions and methods that call their argument in another goroutine, or run tests in parallel.
var concurrentNames = []string{"AddCleanup", "AfterFunc", "Parallel", "RunParallel", "SetFinalizer"}

// readSource parses the files of the package in dir, which is a folder below root.
func readSource(root, dir string, files []string) (s source, err error) {
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return s, fmt.Errorf("parsing a source file: %w", err)
		}
		if reason := concurrency(file); reason != "" && s.concurrent == "" {
			s.concurrent = path.Join(dir, name) + " " + reason
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			if e, ok := n.(ast.Expr); ok {
				s.literals = append(s.literals, literal(e)...)
				s.reads = append(s.reads, pathsRead(root, dir, e)...)
			}
			return true
		})
	}
	slices.Sort(s.reads)
	s.reads = slices.Compact(s.reads)
	return s, nil
}

// concurrency says why code of the file can run in several goroutines. It is empty if no such code is in the file.
func concurrency(file *ast.File) (reason string) {
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil || isConcurrent(name) {
			return "imports " + name
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			reason = "has a go statement"
		case *ast.SelectorExpr:
			if slices.Contains(concurrentNames, n.Sel.Name) {
				reason = "uses " + n.Sel.Name
			}
		}
		return reason == ""
	})
	return reason
}

// isConcurrent reports whether code that imports the package can run in several goroutines. Packages of this repository
// are examined themselves.
func isConcurrent(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case isBelow(name, repositoryPath):
		return false
	case strings.Contains(first, "."):
		return !isOneOf(name, sequentialImports)
	}
	return isOneOf(name, concurrentImports)
}

// isOneOf reports whether the list has the name, or an element that ends with a slash and is a prefix of the name.
func isOneOf(name string, list []string) bool {
	return slices.ContainsFunc(list, func(e string) bool {
		return name == e || strings.HasSuffix(e, "/") && strings.HasPrefix(name, e)
	})
}

// literal is the value of a string literal, or nothing.
func literal(e ast.Expr) []string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if value, err := strconv.Unquote(l.Value); err == nil {
			return []string{value}
		}
	}
	return nil
}

// pathsRead are the existing paths of the repository that an expression names: a relative path, a call of filepath.Join
// that begins with one, or a call of testcluster.Path, which begins at the root.
func pathsRead(root, dir string, e ast.Expr) []string {
	if value := literal(e); len(value) == 1 {
		if strings.HasPrefix(value[0], "../") {
			return existing(root, dir, path.Join(dir, withoutPattern(value[0])))
		}
		return kustomized(root, value[0])
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil
	}
	elements := literalsIn(call.Args)
	if len(elements) == 0 {
		return nil
	}
	switch name := calledName(call); {
	case name == "Path":
		return existing(root, "", longest(root, "", elements))
	case name == "Join" && strings.HasPrefix(elements[0], ".."):
		return existing(root, dir, longest(root, dir, elements))
	}
	return nil
}

// existing is the path if it is in the repository. A folder that contains dir is left out, unless it is the root: most
// such names are data of tests, and a test that names the root looks at all sources.
func existing(root, dir, name string) []string {
	if name == "" || strings.HasPrefix(name, "..") || name != "." && strings.HasPrefix(dir+"/", name+"/") {
		return nil
	}
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		return nil
	}
	return []string{name}
}

// longest joins dir and the elements as long as the path exists. It is empty if that is not so for the first element.
func longest(root, dir string, elements []string) (name string) {
	for _, element := range elements {
		dir = path.Join(dir, withoutPattern(element))
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			break
		}
		name = dir
	}
	return name
}

// withoutPattern is the path up to the first element that is a pattern.
func withoutPattern(name string) string {
	if i := strings.IndexAny(name, "*?["); i >= 0 {
		return path.Dir(name[:i] + "x")
	}
	return name
}

// kustomized are the folders that the text of a kustomization names: testcluster.Kustomized puts the folder config in
// place of CONFIG.
func kustomized(root, text string) (dirs []string) {
	for _, part := range strings.Split(text, "CONFIG/")[1:] {
		if end := strings.IndexAny(part, "], \n"); end >= 0 {
			part = part[:end]
		}
		dirs = append(dirs, existing(root, "", path.Join("config", part))...)
	}
	return dirs
}

// literalsIn are the string literals in the arguments of a call, in their order.
func literalsIn(args []ast.Expr) (all []string) {
	for _, arg := range args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				all = append(all, literal(e)...)
			}
			return true
		})
	}
	return all
}

// calledName is the name of the function or method that a call names.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
