// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// rule names targets of make that use files for which no Go source shows it.
type rule struct {
	// path is a file or a folder.
	path string
	// targets are empty for files that no target uses.
	targets []string
}

// installed are the targets that install Parley in a cluster with nodes.
var installed = []string{endToEnd, soak}

// withAPIServer are the targets that run the project's own kube-apiserver and etcd.
var withAPIServer = []string{page, integration, crash, gitops, dashboards, signIn, endToEnd, soak}

// rules are the files that no package embeds or reads, or that more than packages use. All rules of a file hold. A file
// without a rule that no package uses selects all targets.
var rules = []rule{
	// The build.
	{"Makefile", makeTest},
	{"go.mod", makeTest},
	{"go.sum", makeTest},
	{"hack/go.mk", makeTest},
	{"hack/cluster.mk", makeTest},
	{"hack/setup.sh", []string{page, endToEnd, soak}},
	{"hack/gobuild", withAPIServer},
	{"hack/localcluster/build.sh", withAPIServer},
	{"hack/localcluster/network", []string{verify}},
	{"hack/localcluster/binaries", append([]string{verify}, withAPIServer...)},

	// Checks without tests.
	{".golangci.yml", []string{lint}},
	{"hack/tools", []string{verify, lint}},
	{"hack/verify.sh", []string{verify}},
	{"hack/vendor-page.sh", []string{verify}},
	{"hack/boilerplate.go.txt", []string{verify}},
	{"config/crd", []string{verify}},
	{"config/grafana", []string{verify, dashboards}},
	{"docs/reference", []string{verify}},
	{"internal/gateway/page/ui", []string{page, verify}},
	{"plugins/headlamp", []string{headlamp}},

	// What scripts install, and the scripts.
	{"config/default", installed},
	{"config/admission/stamp", installed},
	{"config/samples/chat.yaml", installed},
	{"hack/deploy.sh", installed},
	{"hack/overlay.sh", installed},
	{"hack/current-context.sh", installed},
	{"hack/soak.sh", []string{soak}},
	{"hack/upgrade.sh", []string{soak}},
	{"hack/release/baseline", []string{soak}},

	// What the tests take from npm and from other repositories.
	{"hack/agent-sandbox", []string{verify, endToEnd}},
	{"hack/axe", []string{page, endToEnd}},
	{"hack/grafana", []string{dashboards}},
	{"hack/mcp-everything", []string{endToEnd}},
	{"hack/model-clients", []string{endToEnd}},
	{"hack/node", []string{endToEnd}},

	// What "make test-archive" lints and tests.
	{"test/archive", []string{verify, archive}},

	// What "make release-test" tests.
	{"charts", nil},
	{"config/pods", nil},
	{"hack/release", []string{verify}},
	{"hack/site", nil},

	// What only people use, and what only documentation is, as long as no test reads it.
	{".ci", nil},
	{".gitignore", nil},
	{"LICENSE", nil},
	{"PROJECT", nil},
	{"config/demo", nil},
	{"hack/bench.sh", nil},
	{"hack/demo-hint.txt", nil},
	{"hack/demo.sh", nil},
	{"hack/kubernetes-version.sh", nil},
	{"hack/lines.sh", nil},
	{"hack/profile.sh", nil},
}
