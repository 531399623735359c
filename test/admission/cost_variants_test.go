// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/testcluster"
)

// variant is the API as it is installed, or a copy of its kinds in a group of its own, in which something is missing.
// No policy binds a copy.
type variant struct {
	name, group string
	change      func(*apiextensionsv1.CustomResourceDefinitionVersion)
}

var variants = []variant{
	{"as installed", v1alpha1.GroupVersion.Group, nil},
	{"without policies", "schema.parley.test", func(*apiextensionsv1.CustomResourceDefinitionVersion) {}},
	{"without rules", "structure.parley.test",
		func(v *apiextensionsv1.CustomResourceDefinitionVersion) { withoutRules(v.Schema.OpenAPIV3Schema) }},
	{"without schema", "free.parley.test", withoutSchema},
}

// withoutRules takes the CEL rules out of a schema.
func withoutRules(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations = nil
	for name, p := range s.Properties {
		withoutRules(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		withoutRules(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutRules(s.AdditionalProperties.Schema)
	}
}

// withoutSchema leaves of a schema that there is an object.
func withoutSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) {
	v.SelectableFields = nil // They have to be in the schema.
	v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
}

// install installs the kinds of a turn for a variant.
func (v variant) install(b *testing.B) {
	b.Helper()
	if v.change == nil {
		return
	}
	var copies []*apiextensionsv1.CustomResourceDefinition
	for _, plural := range []string{"chats", "chatmessages"} {
		raw, err := os.ReadFile(testcluster.Path("config", "crd", "bases", "parley.dev_"+plural+".yaml"))
		if err != nil {
			b.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			b.Fatal(err)
		}
		crd.Name, crd.Spec.Group = plural+"."+v.group, v.group
		crd.Spec.Names.Categories, crd.Spec.Names.ShortNames = nil, nil
		v.change(&crd.Spec.Versions[0])
		copies = append(copies, &crd)
	}
	if _, err := envtest.InstallCRDs(cluster.Config, envtest.CRDInstallOptions{CRDs: copies}); err != nil {
		b.Fatal(err)
	}
}
