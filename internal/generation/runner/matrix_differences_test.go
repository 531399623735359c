// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// difference is what some wire forms commit in place of what the others do, and why.
type difference struct {
	wires []string
	// scenario is the one that it is in; "": any.
	scenario string
	from, to string
	protocol string // what of the provider's protocol it comes from
}

var differences = []difference{
	{
		wires: []string{"openai chat", "azure chat"}, from: reasonLine, to: "",
		protocol: "OpenAI keeps reasoning to itself here, and fantasy reads no field of imitators",
	},
	{
		wires: []string{"openrouter deepseek/deepseek-r1", "vercel deepseek/deepseek-r1"}, from: `"hm" with metadata`,
		to:       `"hm"`,
		protocol: "reasoning has no proof here",
	},
	{
		wires: []string{"openai-compatible"}, from: `"hm" with metadata`, to: `"hm"`,
		protocol: "reasoning has no proof here",
	},
	{
		wires: []string{"anthropic", "bedrock"}, scenario: "usage", from: "20 reasoning", to: "0 reasoning",
		protocol: "reasoning is not counted apart",
	},
	{
		wires: []string{"google"}, from: clockLine, to: clockLine + " with metadata",
		protocol: "the first call has a signature",
	},
	{
		wires: []string{"google"}, scenario: "reasoning, then two calls", from: `"hm" with metadata`, to: `"hm"`,
		protocol: "the first call has the signature, not the reasoning",
	},
	{
		wires: []string{"google"}, scenario: "reasoning, text, then a call", from: `"hm" with metadata; Text "Let me look."`,
		to:       `"hm"; Text "Let me look." with metadata`,
		protocol: "the text has a signature, not the reasoning",
	},
	{
		wires: []string{"google"}, scenario: "reasoning, then text", from: `"hm" with metadata; Text "Paris."`,
		to:       `"hm"; Text "Paris." with metadata`,
		protocol: "the text has a signature, not the reasoning",
	},
	{wires: []string{"google"}, scenario: "a wrong key", from: "401", to: "400", protocol: "a wrong key is a bad request"},
	{wires: []string{"bedrock"}, scenario: "a wrong key", from: "401", to: "403", protocol: "a wrong key is forbidden"},
	{
		wires: []string{"google", "openrouter", "vercel"}, scenario: "an error within the stream", from: "ProviderError 0",
		to:       "ProviderError 500",
		protocol: "the error has a status of its own",
	},
}

// expects is what the wire form commits in the scenario, and why it differs from what others do.
func (w wireForm) expects(scenario, committed string) (string, []string) {
	var because []string
	for _, d := range differences {
		if !slices.Contains(d.wires, w.name) || d.scenario != "" && d.scenario != scenario ||
			!strings.Contains(committed, d.from) {
			continue
		}
		committed = strings.Replace(committed, d.from, d.to, 1)
		because = append(because, d.protocol)
	}
	return committed, because
}

// commits checks what was committed in the scenario.
func (w *wired) commits(m *v1alpha1.ChatMessage, scenario, committed string) bool {
	w.t.Helper()
	want, because := w.expects(scenario, committed)
	got := outline(m)
	if got != want {
		w.t.Errorf("\ncommitted %s\nwant      %s\nsince     %v", got, want, because)
	}
	return got == want
}
