// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// Targets of make.
const (
	verify      = "verify"
	lint        = "lint"
	unit        = "test-unit"
	page        = "test-page"
	integration = "test-integration"
	crash       = "test-crash"
	gitops      = "test-gitops"
	dashboards  = "test-dashboards"
	signIn      = "test-signin"
	endToEnd    = "test-e2e"
	soak        = "soak-short"
	headlamp    = "headlamp"
	archive     = "test-archive"
)

// makeTest are the targets of "make test", in its order.
var makeTest = []string{
	verify, lint, unit, page, integration, crash, gitops, dashboards, signIn, endToEnd, soak,
}

// ownTargets are the folders whose packages run in a target of their own.
var ownTargets = map[string]string{
	"test/page": page, "test/gateway": page,
	"test/crash": crash, "test/model": crash, "test/load": crash, "test/memory": crash, "test/shard": crash,
	"test/outage": crash,
	"test/gitops": gitops, "test/dashboards": dashboards, "test/signin": signIn, "test/e2e": endToEnd,
}

const (
	// apiServer is the folder of the package that starts an API server. Tests that import it are no unit tests.
	apiServer = "test/kit/testcluster"
	// localCluster is the folder of the local cluster's module.
	localCluster = "hack/localcluster"
)

// programs are the folders with the programs that targets of make build and run.
var programs = map[string][]string{
	endToEnd: {"cmd", localCluster + "/cmd"},
	soak:     {"cmd", localCluster + "/cmd", "test/soak"},
}

// lists are the lists of packages that the Makefile asks for.
var lists = map[string]func(graph, goPackage) bool{
	"unit-race":   func(g graph, p goPackage) bool { return g.isUnit(p) && g.raceReason(p) != "" },
	"unit-plain":  func(g graph, p goPackage) bool { return g.isUnit(p) && g.raceReason(p) == "" },
	"cluster":     func(_ graph, p goPackage) bool { return p.Module == localCluster },
	"integration": func(g graph, p goPackage) bool { return g.targetOf(p) == integration },
	"crash":       func(g graph, p goPackage) bool { return g.targetOf(p) == crash },
}

// isUnit reports whether the tests of a package are unit tests of the main module.
func (g graph) isUnit(p goPackage) bool { return g.targetOf(p) == unit && p.Module != localCluster }

// targetOf is the target of make that runs the tests of a package.
func (g graph) targetOf(p goPackage) string {
	for dir, target := range ownTargets {
		if isBelow(p.Dir, dir) {
			return target
		}
	}
	for path := range g.linked(p) {
		if g[path].Dir == apiServer {
			return integration
		}
	}
	return unit
}

// tested are the packages with tests, sorted by path.
func (g graph) tested() (all []goPackage) {
	for _, p := range g {
		if p.HasTests {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b goPackage) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// isBelow reports whether the name is the folder or in it.
func isBelow(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}
