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

	"parley.dev/parley/test/kit/check"
)

// Kustomized are the objects of a kustomization, in which CONFIG stands for the project's folder of that name, built as
// users build it.
func Kustomized(t *testing.T, kustomization string) (all []*unstructured.Unstructured) {
	t.Helper()
	dir := t.TempDir()
	config, err := filepath.Rel(dir, Path("config"))
	check.OK(t, err)
	text := strings.ReplaceAll(kustomization, "CONFIG", config)
	check.OK(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
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
		check.OK(t, o.UnmarshalJSON(one.Raw))
		all = append(all, o)
	}
}
