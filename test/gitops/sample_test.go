// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// sample is what the sample of a repository holds for its namespace, without the namespace itself.
func sample(t *testing.T, ns string) (git repository) {
	t.Helper()
	const dir = "../../config/samples/gitops/team"
	var kustomization struct{ Resources []string }
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &kustomization)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kustomization.Resources {
		f, err := os.Open(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := utils.ReadObjects(f)
		_ = f.Close()
		if err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for _, o := range objects {
			if o.GetKind() != "Namespace" {
				o.SetNamespace(ns)
				git = append(git, o)
			}
		}
	}
	return git
}

func TestSampleRepositoryIsAppliedAndAnswered(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := sample(t, ns)
		what.apply(t, git)
		playPods(t, ns)
		wait(t, ns, "Answered", "Chat/release-notes", "ChatMessage/release-1.4")
		unchanged(t, what, ns, git)

		next := &unstructured.Unstructured{}
		for _, o := range git.copied() {
			if id(o) == "ChatMessage/release-1.4" {
				next = o
			}
		}
		next.SetName("release-1.5")
		git = append(git, next)
		what.apply(t, git)
		wait(t, ns, "Answered", "Chat/release-notes", "ChatMessage/release-1.5")
		unchanged(t, what, ns, git)
	})
}
