// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package localnode

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// recipe is what make would do for the target.
func recipe(t *testing.T, target string, variables ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-n", target}, variables...)...)
	cmd.Dir = "../../.."
	// The make that runs this test says what it does itself.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "USE_CURRENT_CONTEXT"}, name)
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make -n %s: %v\n%s", target, err, out)
	}
	return string(out)
}

func TestTargetsOnExternalClusterLeaveLocalClusterAlone(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	for _, target := range []string{"demo", "test-e2e", "soak", "soak-short", "bench"} {
		t.Run(target, func(t *testing.T) {
			there := recipe(t, target, "USE_CURRENT_CONTEXT=1", "IMAGE=registry.example/parley:1")
			for _, local := range []string{"devcluster", "localcluster", "ocipack", "sudo", variable, "setup.sh"} {
				if strings.Contains(there, local) {
					t.Errorf("on another cluster it does something about %q:\n%s", local, there)
				}
			}
			if !strings.Contains(there, "hack/current-context.sh kubectl") ||
				!strings.Contains(there, ".parley/current.kubeconfig") {
				t.Errorf("on another cluster it does not use the current context:\n%s", there)
			}
			if here := recipe(t, target); !strings.Contains(here, "devcluster") || !strings.Contains(here, " up\n") ||
				strings.Contains(here, "current-context.sh") {
				t.Errorf("without one it does not use the local cluster:\n%s", here)
			}
		})
	}
}
