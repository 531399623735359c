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
	"reflect"
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
func Manifests(dir, kind string) []rbacv1.ClusterRole {
	return manifests[rbacv1.ClusterRole](dir, kind)
}

// Policy is an admission policy of any kind.
type Policy struct {
	metav1.PartialObjectMetadata `json:",inline"`

	Spec map[string]any `json:"spec"`
}

// Policies are the admission policies of a kind in a folder of config/.
func Policies(dir, kind string) []Policy { return manifests[Policy](dir, kind) }

func manifests[T any](dir, kind string) (found []T) {
	names, err := fs.Glob(files, dir+"/*.yaml")
	for _, name := range names {
		text, readErr := files.ReadFile(name)
		err = cmp.Or(err, readErr)
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var object T
			if bytes.Contains(document, []byte("\nkind: "+kind+"\n")) {
				err = cmp.Or(err, yaml.Unmarshal(document, &object))
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

// rules are the fields of a policy that decide about requests. The API server gives them no defaults.
var rules = []string{"matchConditions", "variables", "validations", "auditAnnotations", "mutations"}

// ChangedPolicies are the policies of a kind in a folder of config/ that have other rules in a cluster.
func ChangedPolicies(dir, kind string, policies []Policy) (changed []string) {
	for _, own := range Policies(dir, kind) {
		if slices.ContainsFunc(policies, func(p Policy) bool {
			return p.Name == own.Name && slices.ContainsFunc(rules, func(field string) bool {
				return !reflect.DeepEqual(p.Spec[field], own.Spec[field])
			})
		}) {
			changed = append(changed, own.Name)
		}
	}
	return changed
}
