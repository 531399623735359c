// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// optionsInDocs are the names in the rows of the table of providerOptions, by member.
func optionsInDocs(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/chatmodelconfig.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| member | options |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	named := regexp.MustCompile("`([a-z][A-Za-z]+)(?:\\[\\])?`")
	members := map[string][]string{}
	for row := range strings.Lines(table) {
		first, second, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, member := range named.FindAllStringSubmatch(first, -1) {
			for _, option := range named.FindAllStringSubmatch(second, -1) {
				members[member[1]] = append(members[member[1]], option[1])
			}
		}
	}
	return members
}

func TestDocsListExactlyTheProviderOptions(t *testing.T) {
	version := crds(t)["ChatModelConfig"].Spec.Versions[0]
	options := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["providerOptions"]
	said := optionsInDocs(t)
	for member, schema := range options.Properties {
		names := map[string]bool{}
		walk(member, schema, func(path string, _ apiextensionsv1.JSONSchemaProps) {
			if name := path[strings.LastIndex(path, ".")+1:]; path != member && !strings.HasSuffix(name, "[]") {
				names[name] = true
			}
		})
		for name := range maps.Keys(names) {
			if !slices.Contains(said[member], name) {
				t.Errorf("the page does not name %s.%s", member, name)
			}
		}
		for _, name := range said[member] {
			// The page says of two options what they are in place of or belong to.
			if !names[name] && name != "maxOutputTokens" && name != "openrouter" {
				t.Errorf("the page names %s.%s, which there is not", member, name)
			}
		}
	}
}
