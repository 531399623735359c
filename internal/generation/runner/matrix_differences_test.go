// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"slices"
	"strings"
)

// difference is what some wire forms commit in place of what the others do, and why. One that is fantasy's doing fails
// here with the version that mends it.
type difference struct {
	wires []string
	// scenario is the one that it is in; "": any.
	scenario      string
	from, to      string
	protocol      string // what of the provider's protocol it comes from
	fantasysFault string // or what fantasy does
}

var differences = []difference{
	{
		wires: []string{"openai chat", "azure chat"}, from: reasonLine, to: "",
		protocol: "OpenAI keeps reasoning to itself here, and fantasy reads no field of imitators",
	},
	{
		wires: []string{"openai responses", "azure responses"}, from: `"hm"`, to: `"\nhm"`,
		fantasysFault: "it begins each part of a summary with a line feed",
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
		wires: []string{"google"}, scenario: "usage",
		from: "60 in, 40 cached, 50 out of which 20 reasoning, 150 in all", to: "20 in, 80 cached, 100 out of which 40 reasoning, 200 in all",
		fantasysFault: "it adds up the counts of all chunks, each of which counts from the beginning",
	},
	{
		wires: []string{"google"}, scenario: "one call", from: "ToolCall", to: `Reasoning "" with metadata; ToolCall`,
		protocol: "the first call has a signature, which fantasy tells as a reasoning of its own",
	},
	{
		wires: []string{"google"}, scenario: "two calls", from: "Completed: ", to: `Completed: Reasoning "" with metadata; `,
		protocol: "as above",
	},
	{
		wires: []string{"google"}, scenario: "reasoning, text, then a call", from: "ToolCall", to: `Reasoning "" with metadata; ToolCall`,
		protocol: "as above",
	},
	{wires: []string{"google"}, scenario: "a wrong key", from: "401", to: "400", protocol: "a wrong key is a bad request"},
	{
		wires: []string{"bedrock"}, scenario: "a wrong key", from: "AuthenticationFailed 401", to: "PermissionDenied 403",
		protocol: "a wrong key is forbidden, and the body does not name the error",
	},
	{wires: []string{"google"}, scenario: "an error within the stream", from: "ProviderError 0", to: "ProviderError 500", protocol: "the error has a status of its own"},
	{wires: []string{"anthropic"}, scenario: "an error within the stream", from: "ProviderError 0", to: "ProviderError 200", fantasysFault: "it hands on the status of the stream"},
}

// expects is what the wire form commits in the scenario.
func (w wireForm) expects(scenario, committed string) string {
	for _, d := range differences {
		if slices.Contains(d.wires, w.name) && (d.scenario == "" || d.scenario == scenario) {
			committed = strings.Replace(committed, d.from, d.to, 1)
		}
	}
	return committed
}
