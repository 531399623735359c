// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
)

// mistyped are objects with one wrong value each, with what the refusal says of it.
func mistyped() map[string]write {
	chat := func(change func(*v1alpha1.ChatSpec)) *v1alpha1.Chat {
		c := newChat(unique("mistyped"))
		change(&c.Spec)
		return c
	}
	config := func(change func(*v1alpha1.ChatModelConfigSpec)) *v1alpha1.ChatModelConfig {
		c := chattest.In(ns, chattest.Config(unique("mistyped")))
		change(&c.Spec)
		return c
	}
	return map[string]write{
		"the URL of an MCP server": {administrator, "", creates(chat(func(s *v1alpha1.ChatSpec) {
			s.MCPServers = []v1alpha1.MCPServer{{Name: "github", URL: "mcp.example.com"}}
		})), "url begins with https:// or http:// and a host, and has no user, no spaces and no #, such as https://"},
		"the name of an MCP server": {administrator, "", creates(chat(func(s *v1alpha1.ChatSpec) {
			s.MCPServers = []v1alpha1.MCPServer{{Name: "GitHub", URL: "https://mcp.example.com"}}
		})), "the name of a server has lower-case letters"},
		"a client's tool": {chatter, "", creates(chat(func(s *v1alpha1.ChatSpec) {
			s.Tools = &v1alpha1.ChatTools{Client: []v1alpha1.ClientTool{{Name: "open ticket"}}}
		})), "the name of a tool has letters, digits, _ and - only, such as open_ticket"},
		"a pattern of tools": {chatter, "", creates(chat(func(s *v1alpha1.ChatSpec) {
			s.Tools = &v1alpha1.ChatTools{ToolPolicy: v1alpha1.ToolPolicy{Deny: []v1alpha1.ToolPattern{"*_file"}}}
		})), "with at most one * at the end, such as read_file, github__* or *"},
		"a ChatClass": {chatter, "", creates(chat(func(s *v1alpha1.ChatSpec) { s.ChatClassName = "My Class" })),
			"the name of a ChatClass has lower-case letters"},
		"a currency": {administrator, "", creates(config(func(s *v1alpha1.ChatModelConfigSpec) {
			s.Pricing = &v1alpha1.Pricing{Currency: "usd", InputPerMillion: "1", OutputPerMillion: "1"}
		})), "a currency is three upper-case letters (ISO 4217), such as USD"},
		"a header": {administrator, "", creates(config(func(s *v1alpha1.ChatModelConfigSpec) {
			s.Headers = []v1alpha1.Header{{Name: "X Team", Value: "a"}}
		})), "the name of a header has letters, digits and"},
	}
}

func TestARefusalSaysInWordsWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for name, w := range mistyped() {
		t.Run(name, func(t *testing.T) {
			w.does = "mistypes " + name
			try(t, []write{w})
		})
	}
}
