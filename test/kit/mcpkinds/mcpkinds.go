// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcpkinds brings the kinds of other projects that entries of mcpServers can refer to into the clusters of
// tests: with any fields, since their projects' controllers are not there, and tests say what those would.
package mcpkinds

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"parley.dev/parley/internal/mcp/reference"
)

// Install creates the resource definitions of the group.
func Install(cfg *rest.Config, group string) error {
	if _, err := envtest.InstallCRDs(cfg, definitions(group)); err != nil {
		return fmt.Errorf("installing the kinds of %s: %w", group, err)
	}
	return nil
}

// Uninstall deletes the resource definitions of the group.
func Uninstall(cfg *rest.Config, group string) error {
	if err := envtest.UninstallCRDs(cfg, definitions(group)); err != nil {
		return fmt.Errorf("deleting the kinds of %s: %w", group, err)
	}
	return nil
}

func definitions(group string) (options envtest.CRDInstallOptions) {
	for _, kind := range reference.Kinds() {
		if kind.Group == group {
			options.CRDs = append(options.CRDs, definition(kind))
		}
	}
	return options
}

// definition is of the kind, with any fields. The version that is read first is stored.
func definition(kind schema.GroupKind) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind.Kind)
	names := apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, ListKind: kind.Kind + "List",
		Singular: singular, Plural: strings.TrimSuffix(singular+"s", "ys")}
	if strings.HasSuffix(singular, "y") {
		names.Plural += "ies"
	}
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: names.Plural + "." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: kind.Group, Names: names,
			Scope: apiextensionsv1.NamespaceScoped},
	}
	if strings.HasSuffix(kind.Group, "k8s.io") { // Groups of the community are protected.
		d.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}
	}
	status := &apiextensionsv1.CustomResourceSubresourceStatus{}
	for i, version := range reference.VersionsOf(kind) {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: status},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true)}},
		})
	}
	return d
}

// New is an object of the kind, with what its spec and its status say.
func New(kind schema.GroupKind, namespace, name string, spec, status map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": status}}
	o.SetGroupVersionKind(kind.WithVersion(reference.VersionsOf(kind)[0]))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Conditions are those of a status, all True.
func Conditions(types ...string) (all []any) {
	for _, name := range types {
		all = append(all, map[string]any{"type": name, "status": "True"})
	}
	return all
}
