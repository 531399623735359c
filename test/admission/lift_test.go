// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/testing/testcluster"
)

// TestWithTwoPoliciesLiftedAnAdministratorWritesWhatParleyWrites is what the benchmark needs, to make the same writes as
// Parley without it.
func TestWithTwoPoliciesLiftedAnAdministratorWritesWhatParleyWrites(t *testing.T) {
	s := newScene(t)
	lift(t, "parley-generated-messages")
	lift(t, "parley-status")
	reply := result(s.chat, nil)
	reply.Name = s.asked.Name + "-reply"
	try(t, []write{
		{root, "creates a reply", creates(reply), ""},
		{root, "writes the status of the chat", replacesStatus(s.chat), ""},
		{root, "writes the status of the message", patchesStatus(s.asked, `{"status":{"state":"Committed"}}`), ""},
		{root, "deletes the reply", deletes(reply), ""},
	})
}

// TestAManagerOfAnotherReleaseNamespaceIsTheManager installs Parley into another namespace by an overlay, as far as the
// manager's account goes.
func TestAManagerOfAnotherReleaseNamespaceIsTheManager(t *testing.T) {
	elsewhere := actor{name: "the manager elsewhere", namespace: "ai", account: "parley-manager"}
	dir := t.TempDir()
	base, err := filepath.Rel(dir, testcluster.Path("config", "default"))
	if err != nil {
		t.Fatal(err)
	}
	overlay := fmt.Sprintf("namespace: ai\nresources: [%s]\n", base)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := kubectl(t.Context(), "", "kustomize", dir)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(built, "parley-system:") {
		t.Error("something still names the account of the default namespace")
	}
	// The binding of the default release stays, so that other tests find theirs: an own one has the same effect.
	mustCreate(t, administrator, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ai"}})
	mustCreate(t, administrator, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: elsewhere.account, Namespace: elsewhere.namespace}})
	mustCreate(t, administrator, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "parley-manager-elsewhere"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parley-manager"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: elsewhere.account, Namespace: elsewhere.namespace}},
	})
	s := newScene(t)
	try(t, []write{{elsewhere, "writes the status of a chat", patchesStatus(s.chat, `{"status":{"observedGeneration":1}}`), ""}})
}
