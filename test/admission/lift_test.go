// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// TestAdministratorWritesManagerObjectsWithTwoPoliciesLifted is what the benchmark needs, to make the same writes
// as Parley without it.
func TestAdministratorWritesManagerObjectsWithTwoPoliciesLifted(t *testing.T) {
	s := newScene(t)
	lift(t, "parley-generated-messages", "parley-status")
	reply := result(s.chat)
	reply.Name = s.asked.Name + "-reply"
	try(t, []write{
		{root, "creates a reply", creates(reply), ""},
		{root, "writes the status of the chat", replacesStatus(s.chat), ""},
		{root, "writes the status of the message", patchesStatus(s.asked, `{"status":{"state":"Committed"}}`), ""},
		{root, "deletes the reply", deletes(reply), ""},
	})
}

// overlay installs what is in a directory into a namespace, with the bindings of its service accounts.
const overlay = `
resources: [%[1]s]
namespace: %[2]s
transformers:
- |-
  apiVersion: builtin
  kind: NamespaceTransformer
  metadata: {name: release, namespace: %[2]s}
  setRoleBindingSubjects: allServiceAccounts
`

// TestManagerInAnotherReleaseNamespaceWritesStatus installs Parley into another namespace with an overlay, as
// users do. It is not parallel: meanwhile, the policies do not recognize the manager of other tests.
func TestManagerInAnotherReleaseNamespaceWritesStatus(t *testing.T) {
	elsewhere := actor{name: "the manager of the other release", namespace: "ai", account: "parley-manager"}
	dir := t.TempDir()
	base, err := filepath.Rel(dir, testcluster.Path("config", "default"))
	check.OK(t, err)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, overlay, base, elsewhere.namespace),
		0o600); err != nil {
		t.Fatal(err)
	}
	s := newScene(t)
	writes := patchesStatus(s.chat, `{"status":{"observedGeneration":1}}`)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		check.OK(t, install(ctx))
		awaitAllowed(ctx, t, manager, writes)
	})
	check.OK(t, cluster.Install(t.Context(), dir))
	awaitAllowed(t.Context(), t, elsewhere, writes)
	try(t, []write{
		{manager, "writes the status of a chat, but is not the manager any more", writes, noRight},
		{root, "writes the status of a chat", writes, "only Parley's manager writes the status of chats"},
	})
}

// TestManagerOfOneNamespaceIsTheManagerThere binds the manager's rights as docs/how-to/installing.md has it for a list
// of namespaces.
func TestManagerOfOneNamespaceIsTheManagerThere(t *testing.T) {
	limited := actor{name: "the manager of one namespace", namespace: "limited", account: "parley-manager"}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: limited.account, Namespace: limited.namespace}}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: limited.namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: limited.account, Namespace: limited.namespace}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "limited", Namespace: ns}, Subjects: subjects,
			RoleRef: role("parley-manager")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "limited"}, Subjects: subjects,
			RoleRef: role("parley-manager-cluster")},
	} {
		cluster.Create(t, o)
	}
	s := newScene(t)
	awaitAllowed(t.Context(), t, limited, patchesStatus(s.chat, `{"status":{"observedGeneration":1}}`))
	pod := podspec.Generation(podspec.Settings{Namespace: ns, Image: "parley:test"}, "parley-generation-limited")
	elsewhere := pod.DeepCopy()
	elsewhere.Namespace = otherNS
	try(t, []write{
		{limited, "creates a generation pod", creates(pod), ""},
		{limited, "creates a generation pod in another namespace", creates(elsewhere), noRight},
	})
}

// awaitAllowed waits until the actor may do it: a binding takes effect a moment after it was changed.
func awaitAllowed(ctx context.Context, t *testing.T, a actor, act action) {
	t.Helper()
	c, err := a.client(ctx)
	check.OK(t, err)
	check.OK(t, until(ctx, a.name+" may write", func(ctx context.Context) bool { return act(ctx, c) == nil }))
}

// removeRules removes the kind's validation rules for whole objects until restore is called or the test ends.
func removeRules(t *testing.T, kind string) (restore func()) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: kind}, definition))
	spec, err := json.Marshal(map[string]any{"spec": definition.Object["spec"]})
	check.OK(t, err)
	const rules = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"
	remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"`+rules+`"}]`))
	check.OK(t, cluster.Client.Patch(t.Context(), definition.DeepCopy(), remove))
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
	named := func(suffix string) *v1beta1.ChatMessage {
		m := say(s.chat.Name)
		m.Name += suffix
		return m
	}
	before, since := named("-2026-10"), named("-2026-11")
	user := as(t, owner)
	create := func(m *v1beta1.ChatMessage) func(context.Context) bool {
		return func(ctx context.Context) bool { return creates(m)(ctx, user) == nil }
	}
	restore := removeRules(t, "chatmessages.parley.dev")
	check.OK(t, until(t.Context(), "the names are free", create(before)))
	restore()
	reserved := func(ctx context.Context) bool { return !create(named("-2026-11"))(ctx) }
	check.OK(t, until(t.Context(), "the names are reserved", reserved))
	try(t, []write{
		{owner, "creates a message with a reserved name", creates(since), "belong to generated messages"},
		{owner, "annotates one from before", patches(before, `{"metadata":{"annotations":{"a":"b"}}}`), ""},
		{owner, "edits it", patches(before, `{"spec":{"content":"Hello again"}}`), ""},
		{manager, "says where it stands", patchesStatus(before, `{"status":{"state":"Pending"}}`), ""},
		{owner, "deletes it", deletes(before), ""},
	})
}
