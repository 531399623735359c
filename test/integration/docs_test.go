// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/test/kit/check"
)

// leastManifests is how many the pages have at least: fewer would mean that they are not found.
const leastManifests = 30

// blocks are the indented and the fenced blocks of a page, without what makes them blocks. A command that applies a
// manifest is no block: its manifest is one.
func blocks(t *testing.T, page string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	check.OK(t, err)
	block, fenced := "", false
	end := func() {
		if block != "" {
			all, block = append(all, block), ""
		}
	}
	for line := range strings.Lines(string(text)) {
		inside, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			fenced = !fenced
		case fenced && !strings.HasPrefix(line, "---"):
			block += line
		case !indented, fenced, strings.Contains(inside, "<<'Y'"), strings.TrimSpace(inside) == "Y":
			end()
		default:
			block += inside
		}
	}
	end()
	return all
}

// manifests are the objects of a page. A block that only has mcpServers is that of a chat; kinds without apiVersion
// are Parley's, and those without a name are excerpts. Files that configure the API server itself are no objects of its
// API: the tests of signing in start one with the documented file.
func manifests(t *testing.T, page string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, block := range blocks(t, page) {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte(block), &o.Object); err != nil {
			if strings.HasPrefix(block, "apiVersion:") || strings.HasPrefix(block, "kind:") {
				t.Errorf("%s: %v in\n%s", filepath.Base(page), err, block)
			}
			continue
		}
		if _, ok := o.Object["mcpServers"]; ok {
			o.Object = map[string]any{"kind": "Chat", "spec": o.Object}
		}
		if o.GetKind() == "" || strings.HasPrefix(o.GetAPIVersion(), "apiserver.config.k8s.io/") {
			continue
		}
		if o.GetAPIVersion() == "" {
			o.SetAPIVersion("parley.dev/v1beta1")
		}
		if o.GetName() == "" && o.GetGenerateName() == "" {
			o.SetName("example")
		}
		objects = append(objects, o)
	}
	return objects
}

func TestTheManifestsOfTheDocsAreTaken(t *testing.T) {
	ns, taken := bareNamespace(t), 0
	pages, err := filepath.Glob("../../docs/*/*.md")
	check.OK(t, err)
	strict := client.WithFieldValidation(cluster.Client, "Strict")
	for _, page := range pages {
		for _, o := range manifests(t, page) {
			taken++
			if o.SetNamespace(ns); o.GetKind() == "ClusterChatQuota" {
				o.SetNamespace("")
			}
			if err := strict.Create(t.Context(), o, client.DryRunAll); err != nil {
				t.Errorf("%s: %s %s: %v", filepath.Base(page), o.GetKind(), o.GetName(), err)
			}
		}
	}
	if taken < leastManifests {
		t.Errorf("the pages have only %d manifests", taken)
	}
}
