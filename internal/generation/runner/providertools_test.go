// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelserver"
)

func TestAProviderIsAskedToSearchTheWebWhereItCanAndTheMessageSaysWhereItCannot(t *testing.T) {
	searches := map[string]string{"anthropic": `"web_search_20250305"`, "openai responses": `"type":"web_search"`}
	missing := []string{"tools.provider WebSearch was left out: this provider has no such tool"}
	for _, w := range wireForms {
		t.Run(w.name, func(t *testing.T) {
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
			case can && (!strings.Contains(body, want) || len(g.Warnings) > 0):
				t.Errorf("sent %s; the warnings are %q", body, g.Warnings)
			case !can && (strings.Contains(body, "web_search") || !slices.Equal(g.Warnings, missing)):
				t.Errorf("sent %s; the warnings are %q", body, g.Warnings)
			}
		})
	}
}
