// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// Account is the identity of a namespace's generation pods. It mounts no token by itself: the pod projects one.
func Account(namespace string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:                   accessMeta(namespace),
		AutomountServiceAccountToken: new(false),
	}
}

// Role is all that a generation pod may do: read the namespace's chats, their classes, messages and model
// configurations, create messages, record model calls, list the templates of workspaces, read a ConfigMap or a
// Workspace that it knows the name of, and ask for a token of its own for one workspace, which a policy holds it to. It
// can write no status, read no Secret and change nothing else that exists.
func Role(namespace string) *rbacv1.Role {
	read := []string{"get", "list", "watch"}
	group := []string{v1beta1.GroupVersion.Group}
	return &rbacv1.Role{
		ObjectMeta: accessMeta(namespace),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: group, Resources: []string{"chats", "chatclasses", "chatmodelconfigs", "chatmessages"}, Verbs: read},
			{APIGroups: group, Resources: []string{"chatmessages"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
			{APIGroups: group, Resources: []string{"chatdebugsteps"}, Verbs: []string{"get", "create", "update"}},
			{APIGroups: group, Resources: []string{"workspaces"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"podtemplates"}, Verbs: []string{"list"}},
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{ServiceAccount},
				Verbs: []string{"create"}},
		},
	}
}

// RoleBinding gives the Role to the Account.
func RoleBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: accessMeta(namespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ServiceAccount},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: ServiceAccount, Namespace: namespace}},
	}
}

func accessMeta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      ServiceAccount,
		Namespace: namespace,
		Labels:    map[string]string{"app.kubernetes.io/name": "parley", "app.kubernetes.io/component": ComponentGeneration},
	}
}
