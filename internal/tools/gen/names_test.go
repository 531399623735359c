// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1alpha1"
)

// walk visits all of a YAML document.
func walk(node any, visit func(key string, value any)) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			visit(key, value)
			walk(value, visit)
		}
	case []any:
		for _, value := range node {
			walk(value, visit)
		}
	}
}

func TestTheAPIKnowsTheNamesOfTheTools(t *testing.T) {
	raw, err := os.ReadFile("../../../config/crd/bases/parley.dev_chats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	var allowed []string
	var forClients string
	walk(crd, func(key string, value any) {
		if names, ok := value.([]any); ok && key == "enum" && slices.Contains(names, any("current_time")) {
			for _, name := range names {
				allowed = append(allowed, name.(string))
			}
		}
		if rule, ok := value.(string); ok && key == "rule" && strings.Contains(rule, "'current_time'") {
			forClients = rule
		}
	})
	var want []string
	for _, tool := range builtIn() {
		if tool.Name() != v1alpha1.ToolAdvisor { // A field of its own turns it on.
			want = append(want, tool.Name())
		}
		if !strings.Contains(forClients, "'"+tool.Name()+"'") {
			t.Errorf("a client may take the name %s for a tool of its own", tool.Name())
		}
	}
	slices.Sort(allowed)
	if diff := cmp.Diff(want, allowed); diff != "" {
		t.Errorf("what spec.tools.builtIn.allow may have: -want +got\n%s", diff)
	}
}
