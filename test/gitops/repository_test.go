// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// repository is what Git holds for one namespace.
type repository []*unstructured.Unstructured

// checkOut reads a file of manifests as Git holds it for the namespace.
func checkOut(t *testing.T, ns, file string) repository {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	objects, err := utils.ReadObjects(f)
	if err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	for _, o := range objects {
		o.SetNamespace(ns)
	}
	return objects
}

// copied is a copy for tools to work on: they label what they apply.
func (r repository) copied() repository {
	objects := make(repository, 0, len(r))
	for _, o := range r {
		objects = append(objects, o.DeepCopy())
	}
	return objects
}

// without is the repository after the removal of manifests.
func (r repository) without(ids ...string) repository {
	return slices.DeleteFunc(r.copied(), func(o *unstructured.Unstructured) bool { return slices.Contains(ids, id(o)) })
}

// edited is the repository after the change of a manifest.
func (r repository) edited(t *testing.T, name string, change func(*unstructured.Unstructured)) repository {
	t.Helper()
	changed := r.copied()
	for _, o := range changed {
		if id(o) == name {
			change(o)
			return changed
		}
	}
	t.Fatalf("Git holds no %s", name)
	return nil
}

// ids are the names of the manifests, sorted.
func (r repository) ids() []string {
	var ids []string
	for _, o := range r {
		ids = append(ids, id(o))
	}
	slices.Sort(ids)
	return ids
}

// id names an object within its namespace, as in Chat/triage.
func id(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// set changes a field of a manifest.
func set(t *testing.T, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
