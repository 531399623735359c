// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/test/kit/check"
)

func TestTheSamplesAreTaken(t *testing.T) {
	ns := parallelBare(t)
	paths, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("found %v, %v", paths, err)
	}
	strict := client.WithFieldValidation(cluster.Client, "Strict")
	for _, path := range paths {
		file, err := os.Open(path)
		check.OK(t, err)
		defer func() { _ = file.Close() }() // It was only read.
		for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			object.SetNamespace(ns)
			if err := strict.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
