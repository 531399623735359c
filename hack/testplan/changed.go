// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// repository is what the selection knows of the files of the repository.
type repository struct {
	packages graph
	// names are the files and folders that each kustomization names.
	names map[string][]string
}

// selection is what a change can affect.
type selection struct {
	// packages are the paths of packages whose tests run, with the file that selects each.
	packages map[string]string
	// targets are the targets of make, with the file that selects each.
	targets map[string]string
	// unknown is a file of which it is not known what uses it. It selects all targets.
	unknown string
}

// effect is what files change.
type effect struct {
	// code and tests are the paths of packages whose code or tests change, with the file that changes them.
	code, tests map[string]string
	targets     map[string]string
}

// affected selects the tests and targets that a change of the files can affect. Of deleted files, which are not among
// files, it is known only of which packages they were part: sources that name them name no existing path.
func (r repository) affected(files, deleted []string) selection {
	e := effect{code: map[string]string{}, tests: map[string]string{}, targets: map[string]string{}}
	for _, file := range deleted {
		if !r.addPackages(e, file) {
			return selection{unknown: file}
		}
	}
	for _, file := range files {
		known := r.addPackages(e, file)
		// Tests that look at all sources do not show that they look at this one.
		known = r.addReaders(e, file) && !isSource(file) || known
		known = addTargets(e, file, r.users(file)) || known
		if !known {
			return selection{unknown: file}
		}
	}
	return r.selectFrom(e)
}

// selectFrom selects the tests and targets that what the files change can affect.
func (r repository) selectFrom(e effect) selection {
	s := selection{packages: map[string]string{}, targets: maps.Clone(e.targets)}
	for _, p := range r.packages.tested() {
		if file := r.reason(e, p); file != "" {
			s.packages[p.Path] = file
			addFirst(s.targets, r.packages.targetOf(p), file)
		}
	}
	for target, dirs := range programs {
		if file := r.reasonOfPrograms(e, dirs); file != "" {
			addFirst(s.targets, target, file)
		}
	}
	return s
}

// addPackages adds the packages that a file is part of. It reports whether there is one.
func (r repository) addPackages(e effect, file string) (known bool) {
	isModule := isSource(file) && !strings.HasSuffix(file, ".go")
	for _, p := range r.packages {
		changed := e.code
		switch isHere := path.Dir(file) == p.Dir; {
		case isModule && path.Dir(file) == p.Module, isHere && isCode(file), slices.Contains(p.Code.Embeds, file):
		case isHere && isTest(file), slices.Contains(p.Tests.Embeds, file), isBelow(file, path.Join(p.Dir, "testdata")):
			changed = e.tests
		default:
			continue
		}
		known = true
		addFirst(changed, p.Path, file)
	}
	if known && isSource(file) {
		addTargets(e, file, nil, verify, lint)
	}
	return known
}

// addReaders adds the packages that name a file, or a kustomization with it. It reports whether there is one.
func (r repository) addReaders(e effect, file string) (known bool) {
	users := r.users(file)
	for _, p := range r.packages {
		if reads(p.Code, users) {
			known = true
			addFirst(e.code, p.Path, file)
		}
		if reads(p.Tests, users) {
			known = true
			addFirst(e.tests, p.Path, file)
		}
	}
	return known
}

// reads reports whether the part names one of the files. Who names the root looks at all Go sources.
func reads(p part, files []string) bool {
	return slices.ContainsFunc(p.Reads, func(name string) bool {
		return slices.ContainsFunc(files, func(file string) bool {
			return isBelow(file, name) || name == "." && isSource(file)
		})
	})
}

// users are the file and the kustomizations that it becomes part of.
func (r repository) users(file string) []string {
	users := []string{file}
	for i := 0; i < len(users); i++ {
		for kustomization, names := range r.names {
			isUsed := slices.ContainsFunc(names, func(name string) bool { return isBelow(users[i], name) })
			if isUsed && !slices.Contains(users, kustomization) {
				users = append(users, kustomization)
			}
		}
	}
	return users
}

// addTargets adds the given targets, and those of the rules for any of the names. It reports whether there is a rule.
func addTargets(e effect, file string, names []string, targets ...string) (known bool) {
	for _, rule := range rules {
		if slices.ContainsFunc(names, func(name string) bool { return isBelow(name, rule.path) }) {
			known = true
			targets = append(targets, rule.targets...)
		}
	}
	for _, target := range targets {
		addFirst(e.targets, target, file)
	}
	return known
}

// reason is a changed file that can affect the tests of a package or all tests of its target, or empty.
func (r repository) reason(e effect, p goPackage) string {
	for _, file := range []string{e.tests[p.Path], e.targets[r.packages.targetOf(p)]} {
		if file != "" {
			return file
		}
	}
	return firstOf(e.code, r.packages.needed(p))
}

// reasonOfPrograms is a changed file that can affect a program below the folders, or empty.
func (r repository) reasonOfPrograms(e effect, dirs []string) string {
	needed := map[string]bool{}
	for _, p := range r.packages {
		if p.IsProgram && slices.ContainsFunc(dirs, func(dir string) bool { return isBelow(p.Dir, dir) }) {
			r.packages.follow(needed, []string{p.Path}, true)
		}
	}
	return firstOf(e.code, needed)
}

// firstOf is the least file of the packages, so that the answer does not depend on the order of a map.
func firstOf(files map[string]string, packages map[string]bool) (first string) {
	for path, file := range files {
		if packages[path] && (first == "" || file < first) {
			first = file
		}
	}
	return first
}

// addFirst keeps the first file for each name.
func addFirst(files map[string]string, name, file string) {
	if files[name] == "" {
		files[name] = file
	}
}

// isSource reports whether the file is a Go source or belongs to a module, such as go.sum.
func isSource(file string) bool {
	base := path.Base(file)
	return strings.HasSuffix(file, ".go") || slices.Contains([]string{"go.mod", "go.sum", "go.work", "go.work.sum"}, base)
}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }

func isCode(file string) bool { return strings.HasSuffix(file, ".go") && !isTest(file) }
