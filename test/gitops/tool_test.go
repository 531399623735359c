// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import "testing"

// tool brings a namespace to what Git holds.
type tool interface {
	// apply does one round: apply what Git holds and, where the tool knows how, prune what it applied before and Git holds
	// no longer. It returns what it says that it created, changed or removed, as ids.
	apply(t *testing.T, git repository) (changed []string)
	// drift returns what the tool's drift detection finds to differ from Git, as ids with the differences.
	drift(t *testing.T, git repository) []string
	// managers are the names under which the tool's writes appear in metadata.managedFields.
	managers() []string
}

// controllers are the tools that watch a namespace by themselves: they detect drift and prune.
var controllers = map[string]func(t *testing.T, ns string) tool{
	"Flux":                 newFlux,
	"Argo CD":              func(t *testing.T, ns string) tool { return newArgo(t, ns, false) },
	"Argo CD, server-side": func(t *testing.T, ns string) tool { return newArgo(t, ns, true) },
}

// commands are the tools that people and pipelines call.
var commands = map[string]func(t *testing.T, ns string) tool{
	"kubectl apply":               func(_ *testing.T, ns string) tool { return kubectl{ns: ns} },
	"kubectl apply --server-side": func(_ *testing.T, ns string) tool { return kubectl{ns: ns, serverSide: true} },
}

// with runs a test with each of the tools in a namespace of its own.
func with(t *testing.T, tools map[string]func(t *testing.T, ns string) tool,
	test func(t *testing.T, ns string, what tool)) {
	for name, make := range tools {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			test(t, ns, make(t, ns))
		})
	}
}
