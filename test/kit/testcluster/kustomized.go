// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Kustomized are the objects of a kustomization, in which CONFIG stands for the project's folder of that name, built as
// users build it.
func Kustomized(t *testing.T, kustomization string) (all []*unstructured.Unstructured) {
	t.Helper()
	dir := t.TempDir()
	config, err := filepath.Rel(dir, Path("config"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(kustomization, "CONFIG", config)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", dir).Output()
	if err != nil {
		t.Fatalf("building %s: %v", text, err)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
		var one runtime.RawExtension
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(one.Raw); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}
