// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

// worksAs is a chat whose model works as the service account.
func worksAs(account string, changes v1alpha1.ClusterChanges) *v1alpha1.Chat {
	chat := newChat(unique("chat"))
	chat.Spec.Kubernetes = &v1alpha1.KubernetesAccess{ServiceAccountName: account, Changes: changes}
	return chat
}

// workingAs is a class whose chats' models do.
func workingAs(account string, changes v1alpha1.ClusterChanges) *v1alpha1.ChatClass {
	return newClass(func(s *v1alpha1.ChatClassSpec) {
		s.Defaults.Kubernetes = worksAs(account, changes).Spec.Kubernetes
	})
}

// mayImpersonate lets the person act as the service account of the namespace.
func mayImpersonate(t *testing.T, who actor, account string) {
	t.Helper()
	grant(t, who, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"},
		ResourceNames: []string{account}, Verbs: []string{"impersonate"}})
}

func TestServiceAccountReferenceRequiresImpersonationRight(t *testing.T) {
	t.Parallel()
	mayImpersonate(t, chatter, "viewer")
	awaitAllowed(t.Context(), t, chatter, creates(worksAs("viewer", "")))
	foreign, own := worksAs("fixer", v1alpha1.ClusterChangesWithApproval), worksAs("viewer", "")
	mustCreate(t, administrator, foreign)
	mustCreate(t, chatter, own)
	sub := worksAs("fixer", "")
	sub.Spec.ParentRef = &v1alpha1.ChatReference{Name: foreign.Name}
	mustCreate(t, administrator, workingAs("fixer", ""))
	const refusal = "chatter may not impersonate service account fixer, which spec.kubernetes names"
	try(t, []write{
		{chatter, "names one that they may impersonate",
			creates(worksAs("viewer", v1alpha1.ClusterChangesWithApproval)), ""},
		{chatter, "names another one", creates(worksAs("fixer", "")), refusal},
		{chatter, "names another one in a sub-chat of one that does", creates(sub), refusal},
		{chatter, "names another one instead",
			patches(own, `{"spec":{"kubernetes":{"serviceAccountName":"fixer"}}}`), refusal},
		{chatter, "lets another one change things without approval",
			patches(foreign, `{"spec":{"kubernetes":{"changes":"WithoutApproval"}}}`), refusal},
		{chatter, "changes something else of a chat that names another one",
			patches(foreign, `{"spec":{"title":"Other"}}`), ""},
		{chatter, "takes another one away", patches(foreign, `{"spec":{"kubernetes":null}}`), ""},
		{impostor, "is called like the manager", creates(worksAs("fixer", "")), ""}, // With every right in the namespace.
		{administrator, "names the account of the generation pods", creates(worksAs("parley-generation", "")),
			"this is the account of the generation pods"},
		{administrator, "names a path", creates(worksAs("../fixer", "")),
			"the name of a service account has lower-case letters"},
		{administrator, "names nothing", creates(worksAs("", "")), "should be at least 1 chars long"},
		{administrator, "says of changes what there is not", creates(worksAs("fixer", "Always")), "Unsupported value"},
	})
}

func TestClassServiceAccountRequiresImpersonationRightOfAuthor(t *testing.T) {
	t.Parallel()
	mayImpersonate(t, curator, "viewer")
	awaitAllowed(t.Context(), t, curator, creates(workingAs("viewer", "")))
	own := workingAs("viewer", "")
	mustCreate(t, curator, own)
	const refusal = "curator may not impersonate service account fixer, which spec.defaults.kubernetes names"
	try(t, []write{
		{curator, "names another one", creates(workingAs("fixer", "")), refusal},
		{curator, "names another one instead",
			patches(own, `{"spec":{"defaults":{"kubernetes":{"serviceAccountName":"fixer"}}}}`), refusal},
		{curator, "describes the class", patches(own, `{"spec":{"description":"To look around."}}`), ""},
		{chatter, "has a chat of the class", creates(chatOf(own, nothing)), ""},
		{chatter, "has one that works as another account",
			creates(chatOf(own, func(s *v1alpha1.ChatSpec) { s.Kubernetes = worksAs("fixer", "").Spec.Kubernetes })),
			"chatter may not impersonate service account fixer"},
	})
}

func TestAClassKeepsKubernetesFromItsChats(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1alpha1.ChatRestrictions) {
		r.Fields = []v1alpha1.ChatField{v1alpha1.FieldKubernetes, v1alpha1.FieldSystemPrompt}
	})
	mustCreate(t, curator, class)
	check.OK(t, until(t.Context(), "the class is in force", refusesAPirate(class)))
	try(t, []write{{administrator, "names a service account",
		creates(chatOf(class, func(s *v1alpha1.ChatSpec) { s.Kubernetes = worksAs("fixer", "").Spec.Kubernetes })),
		"does not let its chats set spec.kubernetes"}})
}
