// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// graph finds packages by their import paths.
type graph map[string]goPackage

func newGraph(all []goPackage) graph {
	g := graph{}
	for _, p := range all {
		g[p.Path] = p
	}
	return g
}

// linked are the packages of the repository in the test binary of a package, itself left out.
func (g graph) linked(p goPackage) map[string]bool {
	seen := map[string]bool{}
	g.follow(seen, p.Code.Imports, false)
	g.follow(seen, p.Tests.Imports, false)
	delete(seen, p.Path)
	return seen
}

// needed are the packages that a change of can affect the tests of a package, itself included: those that are linked
// into its test binary, and those of the programs that it runs.
func (g graph) needed(p goPackage) map[string]bool {
	seen := map[string]bool{p.Path: true}
	for _, part := range []part{p.Code, p.Tests} {
		g.follow(seen, part.Imports, true)
		g.follow(seen, part.Builds, true)
	}
	return seen
}

// follow adds the packages and all that they import to seen, and if withPrograms is set what they build.
func (g graph) follow(seen map[string]bool, paths []string, withPrograms bool) {
	for _, path := range paths {
		if seen[path] {
			continue
		}
		seen[path] = true
		g.follow(seen, g[path].Code.Imports, withPrograms)
		if withPrograms {
			g.follow(seen, g[path].Code.Builds, true)
		}
	}
}

// raceReason says why the tests of a package need the race detector. It is empty if they run in one goroutine: then
// the detector can find nothing.
func (g graph) raceReason(p goPackage) string {
	if reason := p.Code.Concurrent; reason != "" {
		return reason
	}
	if reason := p.Tests.Concurrent; reason != "" {
		return reason
	}
	first := ""
	for path := range g.linked(p) {
		if reason := g[path].Code.Concurrent; reason != "" && (first == "" || reason < first) {
			first = reason
		}
	}
	return first
}
