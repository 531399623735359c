// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/testcluster"
)

// components are those of config/mcp, and what each lets the manager read.
var components = map[string][]string{
	"lifecycle-operator": {"mcp.x-k8s.io/mcpservers"},
	"toolhive": {"toolhive.stacklok.dev/mcpservers", "toolhive.stacklok.dev/mcpremoteproxies",
		"toolhive.stacklok.dev/virtualmcpservers"},
	"kagent":   {"kagent.dev/mcpservers", "kagent.dev/remotemcpservers"},
	"services": {"/services"},
}

// component applies a component of config/mcp for the test.
func component(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Rel(dir, testcluster.Path("config", "mcp", name))
	if err != nil {
		t.Fatal(err)
	}
	kustomization := fmt.Sprintf("components: [%s]\n", path)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := kubectl(t.Context(), "", "apply", "--server-side", "-k", dir); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := kubectl(context.WithoutCancel(t.Context()), "", "delete", "-k", dir); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestManagerReadsServerKindsOnlyWithTheirComponent(t *testing.T) {
	t.Parallel()
	all, kinds := slices.Concat(reads, writes), slices.Concat(slices.Collect(maps.Values(components))...)
	of := func() []string { return rights(t, manager, ns, all, kinds) }
	if got := of(); len(got) > 0 {
		t.Errorf("without any it may %q", got)
	}
	for name, kinds := range components {
		t.Run(name, func(t *testing.T) {
			component(t, name)
			var want []string
			for _, kind := range kinds {
				want = append(want, strings.TrimPrefix(kind, "/")+": get list watch")
			}
			slices.Sort(want)
			if err := until(t.Context(), "the rights are there",
				func(context.Context) bool { return slices.Equal(of(), want) }); err != nil {
				t.Errorf("it may %q: %v", of(), err)
			}
		})
	}
}
