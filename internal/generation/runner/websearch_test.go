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

// searches is a model that searches the web for its first answer in a conversation.
var searches = modelserver.Script{Rules: []modelserver.Rule{
	{Name: "search", Match: modelserver.Match{LastUserText: "how many"}, Reply: modelserver.Reply{
		Steps: []modelserver.Step{
			modelserver.Say("I look. "),
			modelserver.SearchFor("population of Tokyo",
				modelserver.Found{URL: "https://stat.example/tokyo", Title: "Tokyo Population"},
				modelserver.Found{URL: "https://wiki.example/tokyo", Title: "Tokyo"}),
			modelserver.Say("14 million."),
		},
	}},
	{Name: "thanks", Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("You are welcome.")}}},
}}

// kinds are what the parts of a message are, calls and results by the name of the tool.
func kinds(m *v1alpha1.ChatMessage) (kinds []string) {
	for i := range m.Spec.Parts {
		switch p := &m.Spec.Parts[i]; {
		case p.ToolCall != nil && p.ToolCall.ProviderExecuted:
			kinds = append(kinds, "call "+p.ToolCall.Name)
		case p.ToolResult != nil && p.ToolResult.ProviderExecuted:
			kinds = append(kinds, "result "+p.ToolResult.Name)
		default:
			kinds = append(kinds, string(p.Type))
		}
	}
	return kinds
}

// The scripted model refuses what the providers refuse: a search without its result, or one that is not as it was.
func TestASearchOfTheProviderIsKeptAndReplayedAlsoToAnotherProvider(t *testing.T) {
	t.Parallel()
	kept := map[string]struct {
		parts []string
		// replayed is what the provider gets back of its own search, and told what others read of it.
		replayed, told []string
	}{
		"anthropic": {
			[]string{"Text", "call web_search", "Source", "Source", "result web_search", "Text"},
			[]string{`"type":"server_tool_use"`, `"query":"population of Tokyo"`, `"encrypted_content":"c2NyaXB0ZWQ6Zm91bmQ6`},
			[]string{"Tokyo Population https://stat.example/tokyo", "Tokyo https://wiki.example/tokyo"},
		},
		// OpenAI has it in store or nowhere: Parley stores nothing there unless it is told to.
		"openai responses": {[]string{"Text", "call web_search", "result web_search", "Text"}, nil, nil},
	}
	for _, w := range wireForms {
		want, searchesItself := kept[w.name]
		if !searchesItself {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			p, url := newPod(t, searches)
			create(t, w.config(p.ns, "default", url))
			others := []string{}
			for _, other := range wireForms {
				if other.base == "-" { // Its host would have to be led to the server.
					continue
				}
				config := other.config(p.ns, strings.ReplaceAll("on-"+other.name, " ", "-"), url)
				create(t, config)
				others = append(others, config.Name)
			}
			p.launch(nil)
			c := p.newChat("searching", func(s *v1alpha1.ChatSpec) {
				s.Tools = &v1alpha1.ChatTools{Provider: []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch}}
			})
			c.ask("searching-1", "So how many live in Tokyo?")
			reply := c.result()
			g := reply.Spec.Generation
			if got := kinds(reply); g.Outcome != v1alpha1.OutcomeCompleted || !slices.Equal(got, want.parts) {
				t.Fatalf("the reply has %v: %+v", got, g)
			}
			if g.PendingCalls != 0 || g.ReplyOutcome != v1alpha1.ReplyComplete {
				t.Errorf("Parley has %d calls to answer, and the reply ended with %s", g.PendingCalls, g.ReplyOutcome)
			}
			c.commit(reply, "")
			for i, config := range append([]string{"default"}, others...) {
				c.config = config
				c.ask("searching-on-"+config, "Thanks.")
				next := c.result()
				if got := textOf(t, next); next.Spec.Generation.Error != nil || got != "You are welcome." {
					t.Fatalf("%s answers %q: %+v", config, got, next.Spec.Generation.Error)
				}
				c.commit(next, "")
				requests := p.models.Requests()
				body := string(requests[len(requests)-1].Body)
				pieces := want.told
				if i == 0 || config == "on-"+w.name {
					pieces = want.replayed
				}
				for _, piece := range append(pieces, "14 million.") {
					if !strings.Contains(body, piece) {
						t.Errorf("%s is not told %s: %.2000s", config, piece, body)
					}
				}
			}
		})
	}
}
