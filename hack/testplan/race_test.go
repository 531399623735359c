// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConcurrency(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"plain":                 {`import "strings"; var _ = strings.Join`, ""},
		"package of this repo":  {`import "parley.dev/parley/internal/text/clip"`, ""},
		"data of Kubernetes":    {`import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"`, ""},
		"go statement":          {`func f() { go f() }`, "has a go statement"},
		"net":                   {`import "net"`, "imports net"},
		"net/url is no network": {`import "net/url"`, ""},
		"net/http":              {`import "net/http"`, "imports net/http"},
		"net/http/httptest":     {`import "net/http/httptest"`, "imports net/http/httptest"},
		"sync":                  {`import "sync"`, "imports sync"},
		"sync/atomic":           {`import "sync/atomic"`, "imports sync/atomic"},
		"os/exec":               {`import "os/exec"`, "imports os/exec"},
		"cgo":                   {`import "C"`, "imports C"},
		"errgroup":              {`import "golang.org/x/sync/errgroup"`, "imports golang.org/x/sync/errgroup"},
		"controller-runtime": {`import ctrl "sigs.k8s.io/controller-runtime"`,
			"imports sigs.k8s.io/controller-runtime"},
		"unknown module":      {`import "example.com/new"`, "imports example.com/new"},
		"parallel test":       {`func TestX(t *testing.T) { t.Parallel() }`, "uses Parallel"},
		"parallel benchmark":  {`func BenchmarkX(b *testing.B) { b.RunParallel(nil) }`, "uses RunParallel"},
		"timer that calls":    {`func f() { time.AfterFunc(0, f) }`, "uses AfterFunc"},
		"name in a string":    {`var x = "go f()"`, ""},
		"goroutine in a test": {`func TestX(t *testing.T) { func() { go f() }() }`, "has a go statement"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+c.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := concurrency(file); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// fixture writes a module with the files, and loads it.
func fixture(t *testing.T, files map[string]string) repository {
	t.Helper()
	root := t.TempDir()
	write(t, root, map[string]string{"go.mod": "module parley.dev/parley\n\ngo 1.27.0\n"})
	write(t, root, files)
	r, err := load(context.Background(), root, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// importing is the source of a package x that imports others of the fixture.
func importing(dirs ...string) string {
	var s strings.Builder
	s.WriteString("package x\n")
	for _, dir := range dirs {
		s.WriteString("import _ \"parley.dev/parley/" + dir + "\"\n")
	}
	return s.String()
}

// external is the same for an external test package.
func external(dirs ...string) string {
	return strings.Replace(importing(dirs...), "package x", "package x_test", 1)
}

// racing is a module in which the package "starts" starts a goroutine, and the tests of "tests" run in parallel.
var racing = map[string]string{
	"starts/a.go": "package x\nfunc f() { go f() }\n",
	"tests/a.go":  "package x\n", "tests/a_test.go": "package x\nfunc f(t interface{ Parallel() }) { t.Parallel() }\n",
	"plain/a.go": "package x\n", "plain/a_test.go": "package x\n",
}

func TestRaceReasonFollowsImports(t *testing.T) {
	const starts, inParallel = "starts/a.go has a go statement", "tests/a_test.go uses Parallel"
	type files = map[string]string
	for name, c := range map[string]struct {
		files files
		want  string
	}{
		"no reason":                  {files{"p/a_test.go": importing("plain")}, ""},
		"import":                     {files{"p/a.go": importing("starts")}, starts},
		"import of an import":        {files{"p/a.go": importing("q"), "q/a.go": importing("starts")}, starts},
		"import of a test":           {files{"p/a.go": importing(), "p/a_test.go": importing("starts")}, starts},
		"import of an external test": {files{"p/a.go": importing(), "p/a_test.go": external("starts")}, starts},
		"import of a test's import":  {files{"p/a_test.go": importing("q"), "q/a.go": importing("starts")}, starts},
		"tests of an import":         {files{"p/a.go": importing("tests")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := maps.Clone(racing)
			maps.Copy(all, c.files)
			g := fixture(t, all).packages
			if got := g.raceReason(g["parley.dev/parley/p"]); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := g.raceReason(g["parley.dev/parley/tests"]); got != inParallel {
				t.Errorf("tests: got %q, want %q", got, inParallel)
			}
		})
	}
}

func TestTargetOfPackage(t *testing.T) {
	g := fixture(t, map[string]string{
		"test/kit/testcluster/a.go":      "package x\n",
		"test/kit/testcluster/a_test.go": "package x\n",
		"helper/a.go":                    importing("test/kit/testcluster"),
		"direct/a_test.go":               importing("test/kit/testcluster"),
		"indirect/a_test.go":             importing("helper"),
		"test/crash/a_test.go":           importing("test/kit/testcluster"),
		"test/crash/sub/a_test.go":       importing(),
		"test/page/a_test.go":            importing(),
		"test/layers/a_test.go":          importing(),
	}).packages
	for dir, want := range map[string]string{
		"test/kit/testcluster": unit, "direct": integration, "indirect": integration, "test/crash": crash,
		"test/crash/sub": crash, "test/page": page, "test/layers": unit,
	} {
		if got := g.targetOf(g["parley.dev/parley/"+dir]); got != want {
			t.Errorf("%s: got %s, want %s", dir, got, want)
		}
	}
}
