// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// removeRules removes the kind's validation rules for whole objects until restore is called or the test ends.
func removeRules(t *testing.T, kind string) (restore func()) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: kind}, definition); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(map[string]any{"spec": definition.Object["spec"]})
	if err != nil {
		t.Fatal(err)
	}
	const rules = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"
	remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"`+rules+`"}]`))
	if err := cluster.Client.Patch(t.Context(), definition.DeepCopy(), remove); err != nil {
		t.Fatal(err)
	}
	restore = sync.OnceFunc(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := cluster.Client.Patch(ctx, definition, client.RawPatch(types.MergePatchType, spec)); err != nil {
			t.Errorf("restoring the rules of %s: %v", kind, err)
		}
	})
	t.Cleanup(restore)
	return restore
}

// TestExistingMessageWithReservedNameCanBeUpdated creates a message as before the names of results were reserved. It
// is not parallel: it changes a resource definition that other tests use.
func TestExistingMessageWithReservedNameCanBeUpdated(t *testing.T) {
	s := newScene(t)
	named := func(suffix string) *v1alpha1.ChatMessage {
		m := say(s.chat.Name)
		m.Name += suffix
		return m
	}
	before, since := named("-2026-10"), named("-2026-11")
	user := as(t, owner)
	create := func(m *v1alpha1.ChatMessage) func(context.Context) bool {
		return func(ctx context.Context) bool { return creates(m)(ctx, user) == nil }
	}
	restore := removeRules(t, "chatmessages.parley.dev")
	if err := until(t.Context(), "the names are free", create(before)); err != nil {
		t.Fatal(err)
	}
	restore()
	reserved := func(ctx context.Context) bool { return !create(named("-2026-11"))(ctx) }
	if err := until(t.Context(), "the names are reserved", reserved); err != nil {
		t.Fatal(err)
	}
	try(t, []write{
		{owner, "creates a message with a reserved name", creates(since), "belong to generated messages"},
		{owner, "annotates one from before", patches(before, `{"metadata":{"annotations":{"a":"b"}}}`), ""},
		{owner, "edits it", patches(before, `{"spec":{"content":"Hello again"}}`), ""},
		{manager, "says where it stands", patchesStatus(before, `{"status":{"state":"Pending"}}`), ""},
		{owner, "deletes it", deletes(before), ""},
	})
}
