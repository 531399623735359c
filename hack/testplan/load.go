// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// repositoryPath is the path of the repository's main module, with which the paths of the others begin.
const repositoryPath = "parley.dev/parley"

// modules are the folders of the modules that have tests.
var modules = []string{".", "hack/localcluster", "test/gitops", "test/dashboards", "test/signin"}

// goPackage is what the plan needs to know of a package. Paths of files are relative to the root of the repository, and
// imports are those of packages of the repository.
type goPackage struct {
	Path, Dir, Module string
	// IsProgram reports whether it is a command.
	IsProgram bool
	HasTests  bool
	// Code is the package without its tests, and Tests are its tests.
	Code, Tests part
}

// part is a package without its tests, or the tests of a package.
type part struct {
	// Imports are the packages that are linked into it.
	Imports []string
	// Builds are the programs that it compiles and runs.
	Builds []string
	// Embeds are the files that are compiled into it.
	Embeds []string
	// Reads are files and folders that it names.
	Reads []string
	// Concurrent says what makes the race detector necessary.
	Concurrent string
}

// listed is what "go list -json" prints of a package.
type listed struct {
	Dir, ImportPath, Name                       string
	GoFiles, CgoFiles                           []string
	TestGoFiles, XTestGoFiles                   []string
	EmbedFiles, TestEmbedFiles, XTestEmbedFiles []string
	Imports, TestImports, XTestImports          []string
}

// load lists the packages of the modules below root, and reads their sources and the kustomizations.
func load(ctx context.Context, root string, modules []string) (r repository, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return r, fmt.Errorf("finding the repository: %w", err)
	}
	if r.names, err = kustomizations(root); err != nil {
		return r, err
	}
	var all []goPackage
	for _, module := range modules {
		found, err := list(ctx, filepath.Join(root, module))
		if err != nil {
			return r, err
		}
		for _, l := range found {
			p, err := l.read(root, module)
			if err != nil {
				return r, err
			}
			all = append(all, p)
		}
	}
	r.packages = newGraph(localOnly(all))
	return r, nil
}

// list runs "go list" in the folder of a module.
func list(ctx context.Context, dir string) (all []listed, err error) {
	command := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,Name,GoFiles,CgoFiles,TestGoFiles,"+
		"XTestGoFiles,EmbedFiles,TestEmbedFiles,XTestEmbedFiles,Imports,TestImports,XTestImports", "./...")
	var stdout, stderr bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = dir, &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("listing the packages in %s: %w\n%s", dir, err, stderr.String())
	}
	for decoder := json.NewDecoder(&stdout); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding the packages in %s: %w", dir, err)
		}
		all = append(all, l)
	}
}

// read adds what the sources of a package show.
func (l listed) read(root, module string) (p goPackage, err error) {
	dir, err := filepath.Rel(root, l.Dir)
	if err != nil {
		return p, fmt.Errorf("finding package %s: %w", l.ImportPath, err)
	}
	tests := slices.Concat(l.TestGoFiles, l.XTestGoFiles)
	code, err := readSource(root, dir, slices.Concat(l.GoFiles, l.CgoFiles))
	if err != nil {
		return p, err
	}
	ofTests, err := readSource(root, dir, tests)
	if err != nil {
		return p, err
	}
	p = goPackage{Path: l.ImportPath, Dir: dir, Module: module, IsProgram: l.Name == "main", HasTests: len(tests) > 0}
	p.Code = code.part(dir, l.Imports, l.EmbedFiles)
	p.Tests = ofTests.part(dir, slices.Concat(l.TestImports, l.XTestImports),
		slices.Concat(l.TestEmbedFiles, l.XTestEmbedFiles))
	if dir == kustomizer {
		p.Code.Reads = slices.DeleteFunc(p.Code.Reads, func(name string) bool { return name == "config" })
	}
	return p, nil
}

// kustomizer is the package with the function Kustomized. Of the folder config it reads what its callers name.
const kustomizer = "test/kit/testcluster"

// part joins what the sources show with what "go list" found.
func (s source) part(dir string, imports, embeds []string) part {
	result := part{Imports: imports, Builds: s.literals, Reads: s.reads, Concurrent: s.concurrent}
	for _, name := range embeds {
		result.Embeds = append(result.Embeds, path.Join(dir, name))
	}
	return result
}

// localOnly removes the imports that are not packages of the repository, and the literals that are no programs of it.
func localOnly(all []goPackage) []goPackage {
	isProgram := map[string]bool{}
	for _, p := range all {
		isProgram[p.Path] = p.IsProgram
	}
	keep := func(list []string, is func(string) bool) []string {
		list = slices.DeleteFunc(list, func(name string) bool { return !is(name) })
		slices.Sort(list)
		return slices.Compact(list)
	}
	isLocal := func(name string) bool { _, ok := isProgram[name]; return ok }
	for i := range all {
		for _, p := range []*part{&all[i].Code, &all[i].Tests} {
			p.Imports = keep(p.Imports, isLocal)
			p.Builds = keep(p.Builds, func(name string) bool { return isProgram[name] })
		}
	}
	slices.SortFunc(all, func(a, b goPackage) int { return strings.Compare(a.Path, b.Path) })
	return all
}
