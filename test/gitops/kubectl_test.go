// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/ssa/utils"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// run runs the real kubectl in the namespace and returns what it printed and its exit code.
func run(t *testing.T, ns, stdin string, args ...string) (output string, code int) {
	t.Helper()
	args = append([]string{"--kubeconfig", kubeconfig, "--cache-dir", filepath.Dir(kubeconfig), "--namespace", ns},
		args...)
	cmd := exec.CommandContext(t.Context(), program("kubectl"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return out.String(), exit.ExitCode()
	} else if err != nil {
		t.Fatalf("running kubectl: %v", err)
	}
	return out.String(), 0
}

// person does what a person does with kubectl, which must succeed.
func person(t *testing.T, ns string, args ...string) {
	t.Helper()
	if out, code := run(t, ns, "", args...); code != 0 {
		t.Fatalf("kubectl %s: %s", strings.Join(args, " "), out)
	}
}

// kubectl applies with kubectl itself, as scripts and pipelines do. It does not prune.
type kubectl struct {
	ns         string
	serverSide bool
}

func (k kubectl) managers() []string {
	if k.serverSide {
		return []string{"kubectl"}
	}
	return []string{"kubectl-client-side-apply"}
}

func (k kubectl) flags() []string {
	if k.serverSide {
		return []string{"--server-side"}
	}
	return nil
}

func (k kubectl) apply(t *testing.T, git repository) []string {
	t.Helper()
	out, code := run(t, k.ns, manifests(t, git), append([]string{"apply", "-f", "-"}, k.flags()...)...)
	if code != 0 {
		t.Fatalf("kubectl apply: %s", out)
	}
	var changed []string
	for line := range strings.Lines(out) {
		name, action, _ := strings.Cut(strings.TrimSpace(line), " ")
		// A server-side apply does not say whether it changed anything.
		if action != "unchanged" && action != "serverside-applied" {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

func (k kubectl) drift(t *testing.T, git repository) []string {
	t.Helper()
	out, code := run(t, k.ns, manifests(t, git), append([]string{"diff", "-f", "-"}, k.flags()...)...)
	switch code {
	case 0:
		return nil
	case 1:
		return []string{out}
	}
	t.Fatalf("kubectl diff: %s", out)
	return nil
}

func manifests(t *testing.T, git repository) string {
	t.Helper()
	text, err := utils.ObjectsToYAML(git)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// difference says how two objects differ.
func difference(a, b *unstructured.Unstructured) string {
	if a == nil || b == nil {
		return "is not there"
	}
	return cmp.Diff(a.Object, b.Object)
}
