// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/wire"
)

// ownTools are the names of the tools that providers run, for the policy and for package wire.
var ownTools = map[v1beta1.ProviderTool]string{
	v1beta1.ProviderWebSearch: wire.WebSearch, v1beta1.ProviderCodeExecution: wire.CodeExecution,
}

// OwnTools are those of the chat's tools that the provider of the configuration runs itself, and those that it is not
// to be offered. A provider runs its tools within the reply, so that no person can approve a call.
func OwnTools(spec *v1beta1.ChatModelConfigSpec, chat *v1beta1.ChatTools) (own []fantasy.Tool,
	left []v1beta1.ProviderToolUnavailable) {
	if chat == nil {
		return nil, nil
	}
	omit := func(tool v1beta1.ProviderTool, why v1beta1.ProviderToolReason) {
		left = append(left, v1beta1.ProviderToolUnavailable{Tool: tool, Reason: why})
	}
	for _, tool := range chat.Provider {
		name := ownTools[tool]
		switch {
		case !toolpolicy.Allows(chat, name):
			omit(tool, v1beta1.ProviderToolNotAllowed)
		case toolpolicy.NeedsApproval(chat, name):
			omit(tool, v1beta1.ProviderToolNeedsApproval)
		case !hasOwnTools(spec):
			omit(tool, v1beta1.ProviderToolNotSupported)
		default:
			own = append(own, fantasy.ProviderDefinedTool{ID: name, Name: name, Args: argsOf(tool, chat.WebSearch)})
		}
	}
	return own, left
}

// hasOwnTools reports whether the provider of the configuration has tools of its own.
func hasOwnTools(spec *v1beta1.ChatModelConfigSpec) bool {
	return spec.Provider == v1beta1.ProviderAnthropic || spec.Provider == v1beta1.ProviderGoogle ||
		finish.ProtocolOf(spec) == finish.Responses
}

// argsOf are the settings of a tool, as package wire has them.
func argsOf(tool v1beta1.ProviderTool, search *v1beta1.WebSearchSettings) map[string]any {
	if tool != v1beta1.ProviderWebSearch || search == nil {
		return nil
	}
	args := map[string]any{}
	if search.AllowedDomains != nil {
		args[wire.AllowedDomains] = search.AllowedDomains
	}
	if search.BlockedDomains != nil {
		args[wire.BlockedDomains] = search.BlockedDomains
	}
	if at := search.Location; at != nil {
		for name, value := range map[string]string{wire.City: at.City, wire.Region: at.Region, wire.Country: at.Country,
			wire.Timezone: at.Timezone} {
			if value != "" {
				args[name] = value
			}
		}
	}
	return args
}
