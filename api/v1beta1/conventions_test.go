// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// crds reads the generated definitions: what the API server gets is what the conventions are about.
func crds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != 9 {
		t.Fatalf("found %v, %v", files, err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			t.Fatal(err)
		}
		out[crd.Spec.Names.Kind] = &crd
	}
	return out
}

// walk visits every schema below the object's own fields.
func walk(path string, s apiextensionsv1.JSONSchemaProps, visit func(path string, s apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	for name, property := range s.Properties {
		if path == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		walk(path+"."+name, property, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", *s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(path+"[]", *s.AdditionalProperties.Schema, visit)
	}
}

func eachSchema(t *testing.T, check func(path string, s apiextensionsv1.JSONSchemaProps) string) {
	t.Helper()
	for kind, crd := range crds(t) {
		walk("", *crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, s apiextensionsv1.JSONSchemaProps) {
			if complaint := check(path, s); complaint != "" {
				t.Errorf("%s%s %s", kind, path, complaint)
			}
		})
	}
}

func TestEveryStringAndListIsBounded(t *testing.T) {
	eachSchema(t, func(_ string, s apiextensionsv1.JSONSchemaProps) string {
		switch {
		case s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "":
			return "has no maxLength"
		case s.Type == "array" && s.MaxItems == nil:
			return "has no maxItems"
		case s.Type == "object" && s.AdditionalProperties != nil && (s.MaxProperties == nil || len(s.XValidations) == 0):
			return "is a map without maxProperties, or without a rule about its keys"
		}
		return ""
	})
}

// isWrittenByPrograms reports whether no person types the field, so that its pattern is shown to none. Base64 is too
// long for a rule, whose cost grows with it.
func isWrittenByPrograms(path string) bool {
	return strings.HasPrefix(path, ".spec.generation.") || strings.HasPrefix(path, ".spec.history[]") ||
		strings.HasPrefix(path, ".status.") || strings.HasSuffix(path, ".data")
}

func TestNoPatternIsShownInPlaceOfWords(t *testing.T) {
	eachSchema(t, func(path string, s apiextensionsv1.JSONSchemaProps) string {
		if s.Pattern != "" && !isWrittenByPrograms(path) {
			return fmt.Sprintf("has the pattern %s: say what is allowed, by a rule with a message", s.Pattern)
		}
		return ""
	})
}

func TestEveryListSaysHowItIsMerged(t *testing.T) {
	eachSchema(t, func(path string, s apiextensionsv1.JSONSchemaProps) string {
		switch {
		case s.Type == "array" && s.XListType == nil:
			return "has no listType"
		case strings.HasSuffix(path, ".conditions") && (*s.XListType != "map" || s.XListMapKeys[0] != "type"):
			return "is not a map by type"
		}
		return ""
	})
}

func TestEveryFieldIsDescribedByItsName(t *testing.T) {
	eachSchema(t, func(path string, s apiextensionsv1.JSONSchemaProps) string {
		name := path[strings.LastIndex(path, ".")+1:]
		if path == "" || strings.HasSuffix(path, "[]") || strings.Contains(path, ".conditions[]") {
			return ""
		}
		if !strings.HasPrefix(s.Description, name) {
			return fmt.Sprintf("is described as %q, which does not begin with its name", s.Description)
		}
		return ""
	})
}

// observed are fields of what is found, not wanted.
var observed = []string{"status", "state", "startedAt", "finishedAt", "observedGeneration", "conditions", "response"}

// A generated ChatMessage is the exception: its spec is the account of its attempt, which never changes.
func TestNoSpecHoldsWhatIsObserved(t *testing.T) {
	eachSchema(t, func(path string, _ apiextensionsv1.JSONSchemaProps) string {
		name := path[strings.LastIndex(path, ".")+1:]
		if strings.HasPrefix(path, ".spec.") && slices.Contains(observed, name) &&
			!strings.HasPrefix(path, ".spec.generation.") && !strings.HasPrefix(path, ".spec.parts[].") {
			return "is observed, and stands in the spec"
		}
		return ""
	})
}

func TestARecordingHasNeitherSpecNorStatus(t *testing.T) {
	schema := crds(t)["ChatDebugStep"].Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range []string{"spec", "status"} {
		if _, ok := schema.Properties[name]; ok {
			t.Errorf("it has a %s", name)
		}
	}
}

func TestKindsHavePrinterColumnsAndUnobservedDefaultStatus(t *testing.T) {
	for kind, crd := range crds(t) {
		if kind == "ChatDebugStep" {
			continue // It is a record of what was, and has nothing to become.
		}
		version := crd.Spec.Versions[0]
		columns := map[string]bool{}
		for _, column := range version.AdditionalPrinterColumns {
			columns[column.Name] = true
		}
		if !columns["Ready"] || !columns["Reason"] || !columns["Age"] {
			t.Errorf("%s lacks one of the columns Ready, Reason and Age: %v", kind, columns)
		}
		status := version.Schema.OpenAPIV3Schema.Properties["status"]
		if status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
			t.Errorf("the status of %s does not begin with observedGeneration -1", kind)
		}
		if version.Subresources == nil || version.Subresources.Status == nil {
			t.Errorf("%s has no status subresource", kind)
		}
		for _, category := range crd.Spec.Names.Categories {
			if category == crd.Spec.Names.Singular || category == crd.Spec.Names.Plural {
				t.Errorf("the category %s of %s hides the kind of that name", category, kind)
			}
		}
	}
}
