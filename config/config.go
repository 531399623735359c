// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config embeds the manifests that an installation is compared with.
package config

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// files are the roles and the admission policies.
//
//go:embed rbac/*.yaml admission/*.yaml admission/stamp/*.yaml
var files embed.FS

// Manifests are the objects of a kind in a folder of config/, with the rules of roles.
func Manifests(dir, kind string) (found []rbacv1.ClusterRole) {
	names, err := fs.Glob(files, dir+"/*.yaml")
	for _, name := range names {
		text, readErr := files.ReadFile(name)
		err = cmp.Or(err, readErr)
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var object rbacv1.ClusterRole
			err = cmp.Or(err, yaml.Unmarshal(document, &object))
			if object.Kind == kind {
				found = append(found, object)
			}
		}
	}
	if err != nil {
		panic(fmt.Sprintf("reading config/%s: %v", dir, err)) // Cannot happen: the files are constants.
	}
	return found
}

// UnenforcedPolicies are the admission policies of config/ that a cluster lacks, and those that it has without a
// binding that denies everywhere.
func UnenforcedPolicies(policies []metav1.PartialObjectMetadata,
	bindings []admissionv1.ValidatingAdmissionPolicyBinding) (missing, unbound []string) {
	for _, m := range Manifests("admission", "ValidatingAdmissionPolicy") {
		switch {
		case !slices.ContainsFunc(policies, func(o metav1.PartialObjectMetadata) bool { return o.Name == m.Name }):
			missing = append(missing, m.Name)
		case !slices.ContainsFunc(bindings, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == m.Name && b.Spec.MatchResources == nil &&
				slices.Contains(b.Spec.ValidationActions, admissionv1.Deny)
		}):
			unbound = append(unbound, m.Name)
		}
	}
	return missing, unbound
}
