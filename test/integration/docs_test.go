// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// blocks are the indented blocks of a page, without their indentation.
func blocks(t *testing.T, page string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	block := ""
	for line := range strings.Lines(string(text)) {
		if inside, ok := strings.CutPrefix(line, "    "); ok {
			block += inside
		} else if block != "" {
			all, block = append(all, block), ""
		}
	}
	return all
}

// manifests are the objects of a page. A block that only has mcpServers, at any depth, is those of a chat.
func manifests(t *testing.T, page string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, block := range blocks(t, page) {
		fields := map[string]any{}
		if strings.HasPrefix(block, "$") || yaml.Unmarshal([]byte(block), &fields) != nil {
			continue
		}
		if _, ok := fields["mcpServers"]; ok {
			fields = map[string]any{"apiVersion": "parley.dev/v1alpha1", "kind": "Chat",
				"metadata": map[string]any{"name": "example"}, "spec": fields}
		}
		if fields["kind"] != nil {
			objects = append(objects, &unstructured.Unstructured{Object: fields})
		}
	}
	return objects
}

func TestTheManifestsOfThePageAboutMCPServersAreTaken(t *testing.T) {
	ns := bareNamespace(t)
	objects := manifests(t, "mcp.md")
	if len(objects) < 5 {
		t.Fatalf("the page has only %d", len(objects))
	}
	strict := client.WithFieldValidation(cluster.Client, "Strict")
	for _, o := range objects {
		o.SetNamespace(ns)
		if err := strict.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}
