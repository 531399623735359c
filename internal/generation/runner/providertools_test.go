// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

func TestAProviderIsAskedToSearchTheWebWhereItCanAndTheMessageSaysWhereItCannot(t *testing.T) {
	t.Parallel()
	searches := map[string]string{"anthropic": `"web_search_20250305"`, "openai responses": `"type":"web_search"`,
		"azure responses": `"type":"web_search"`, "google": `"googleSearch":{}`}
	missing := []v1alpha1.ProviderToolUnavailable{
		{Tool: v1alpha1.ProviderWebSearch, Reason: v1alpha1.ProviderToolNotSupported}}
	for _, w := range wireForms {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			p := startWired(t, w, modelserver.Script{})
			c := p.newChat("searching", func(s *v1alpha1.ChatSpec) {
				s.Tools = &v1alpha1.ChatTools{Provider: []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch}}
			})
			c.ask("searching-1", "What is new?")
			g := c.result().Spec.Generation
			if g.Outcome != v1alpha1.OutcomeCompleted {
				t.Fatalf("the attempt ended %+v", g)
			}
			body := string(p.models.Requests()[0].Body)
			switch want, can := searches[w.name]; {
			case can && (!strings.Contains(body, want) || len(g.ProviderToolsUnavailable) > 0):
				t.Errorf("sent %s; without %v", body, g.ProviderToolsUnavailable)
			case !can && (strings.Contains(body, "web_search") || !slices.Equal(g.ProviderToolsUnavailable, missing)):
				t.Errorf("sent %s; without %v", body, g.ProviderToolsUnavailable)
			}
		})
	}
}
