// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/toolpolicy"
)

// webSearch is the name of the tool that searches the web, of every provider that has one.
const webSearch = "web_search"

// OwnTools are those of the chat's tools that the provider of the configuration runs itself, and those that it is not
// to be offered. A provider runs its tools within the reply, so that nobody can approve a call.
func OwnTools(spec *v1alpha1.ChatModelConfigSpec, chat *v1alpha1.ChatTools) (own []fantasy.Tool,
	left []v1alpha1.ProviderToolUnavailable) {
	if chat == nil {
		return nil, nil
	}
	leaveOut := func(tool v1alpha1.ProviderTool, why v1alpha1.ProviderToolReason) {
		left = append(left, v1alpha1.ProviderToolUnavailable{Tool: tool, Reason: why})
	}
	for _, tool := range chat.Provider {
		offered := offer(spec, tool)
		switch {
		case !toolpolicy.Allows(chat, webSearch):
			leaveOut(tool, v1alpha1.ProviderToolNotAllowed)
		case toolpolicy.NeedsApproval(chat, webSearch):
			leaveOut(tool, v1alpha1.ProviderToolNeedsApproval)
		case offered == nil:
			leaveOut(tool, v1alpha1.ProviderToolNotSupported)
		default:
			own = append(own, offered)
		}
	}
	return own, left
}

// offer is the tool as the provider of the configuration has it; nil if it has none.
func offer(spec *v1alpha1.ChatModelConfigSpec, tool v1alpha1.ProviderTool) fantasy.Tool {
	switch {
	case tool != v1alpha1.ProviderWebSearch:
	case spec.Provider == v1alpha1.ProviderAnthropic, spec.Provider == v1alpha1.ProviderGoogle,
		finish.ProtocolOf(spec) == finish.Responses:
		return fantasy.ProviderDefinedTool{ID: wire.WebSearch, Name: wire.WebSearch}
	}
	return nil
}
