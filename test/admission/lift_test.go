// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, overlay, base, elsewhere.namespace),
		0o600); err != nil {
		t.Fatal(err)
	}
	s := newScene(t)
	writes := patchesStatus(s.chat, `{"status":{"observedGeneration":1}}`)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := install(ctx); err != nil {
			t.Fatal(err)
		}
		awaitAllowed(ctx, t, manager, writes)
	})
	if err := cluster.Install(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	awaitAllowed(t.Context(), t, elsewhere, writes)
	try(t, []write{
		{manager, "writes the status of a chat, but is not the manager any more", writes, noRight},
		{root, "writes the status of a chat", writes, "only Parley's manager writes the status of chats"},
	})
}

// awaitAllowed waits until the actor may do it: a binding takes effect a moment after it was changed.
func awaitAllowed(ctx context.Context, t *testing.T, a actor, act func(context.Context, client.Client) error) {
	t.Helper()
	c, err := a.client(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := until(ctx, a.name+" may write", func(ctx context.Context) bool { return act(ctx, c) == nil }); err != nil {
		t.Fatal(err)
	}
}
