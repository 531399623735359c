// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"slices"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	fluxManager = "kustomize-controller"
	fluxGroup   = "kustomize.toolkit.fluxcd.io"
	fluxName    = "chats"
)

// flux does what Flux's kustomize-controller does in one reconciliation, with the same engine and the same options.
type flux struct {
	ns      string
	manager *ssa.ResourceManager
	// inventory is what the last round applied.
	inventory object.ObjMetadataSet
}

func newFlux(_ *testing.T, ns string) tool { return fluxIn(ns) }

func fluxIn(ns string) *flux {
	poller := polling.NewStatusPoller(cluster.Client, cluster.Client.RESTMapper(), polling.Options{})
	return &flux{ns: ns,
		manager: ssa.NewResourceManager(cluster.Client, poller, ssa.Owner{Field: fluxManager, Group: fluxGroup})}
}

func (*flux) managers() []string { return []string{fluxManager} }

// prepare labels the manifests as Flux does.
func (f *flux) prepare(t *testing.T, git repository) []*unstructured.Unstructured {
	t.Helper()
	objects := git.copied()
	f.manager.SetOwnerLabels(objects, fluxName, f.ns)
	if err := normalize.UnstructuredList(objects); err != nil {
		t.Fatal(err)
	}
	return objects
}

// options are those of kustomize-controller.
func (*flux) options() ssa.ApplyOptions {
	o := ssa.DefaultApplyOptions()
	o.ExclusionSelector = map[string]string{fluxGroup + "/reconcile": "disabled", fluxGroup + "/ssa": "Ignore"}
	o.IfNotPresentSelector = map[string]string{fluxGroup + "/ssa": "IfNotPresent"}
	o.ForceSelector = map[string]string{fluxGroup + "/force": "enabled"}
	o.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: fluxManager, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{fluxGroup + "/ssa": "Merge"},
	}
	return o
}

func (f *flux) apply(t *testing.T, git repository) []string {
	t.Helper()
	set, err := f.manager.ApplyAllStaged(t.Context(), f.prepare(t, git), f.options())
	if err != nil {
		t.Fatalf("Flux could not apply: %v", err)
	}
	changed := acted(set, ssa.CreatedAction, ssa.ConfiguredAction)
	applied := set.ToObjMetadataSet()
	var stale []*unstructured.Unstructured
	for _, gone := range f.inventory.Diff(applied) {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gone.GroupKind.WithVersion("v1beta1"))
		o.SetNamespace(gone.Namespace)
		o.SetName(gone.Name)
		stale = append(stale, o)
	}
	f.inventory = applied
	options := ssa.DefaultDeleteOptions()
	options.Inclusions = f.manager.GetOwnerLabels(fluxName, f.ns)
	options.Exclusions = map[string]string{fluxGroup + "/prune": "disabled", fluxGroup + "/reconcile": "disabled"}
	pruned, err := f.manager.DeleteAll(t.Context(), stale, options)
	if err != nil {
		t.Fatalf("Flux could not prune: %v", err)
	}
	changed = append(changed, acted(pruned, ssa.DeletedAction)...)
	slices.Sort(changed)
	return changed
}

// acted are the ids of the entries with one of the actions.
func acted(set *ssa.ChangeSet, actions ...ssa.Action) []string {
	var ids []string
	for _, e := range set.Entries {
		if slices.Contains(actions, e.Action) {
			ids = append(ids, e.ObjMetadata.GroupKind.Kind+"/"+e.ObjMetadata.Name)
		}
	}
	return ids
}

func (f *flux) drift(t *testing.T, git repository) []string {
	t.Helper()
	var drifted []string
	for _, o := range f.prepare(t, git) {
		entry, live, merged, err := f.manager.Diff(t.Context(), o, ssa.DiffOptions{
			Exclusions: map[string]string{fluxGroup + "/reconcile": "disabled"},
		})
		if err != nil {
			t.Fatalf("Flux could not compare: %v", err)
		}
		if entry.Action != ssa.UnchangedAction {
			drifted = append(drifted, id(o)+" "+difference(live, merged))
		}
	}
	return drifted
}
