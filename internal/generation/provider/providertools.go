// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/toolpolicy"
)

// webSearch is the name of the tool that searches the web, of every provider that has one.
const webSearch = "web_search"

// OwnTools are those of the chat's tools that the provider of the configuration runs itself. The warnings name the
// others. A provider runs its tools within the reply, so that nobody can approve a call.
func OwnTools(spec *v1alpha1.ChatModelConfigSpec, chat *v1alpha1.ChatTools) (own []fantasy.Tool,
	warnings []fantasy.CallWarning) {
	if chat == nil {
		return nil, nil
	}
	leaveOut := func(tool v1alpha1.ProviderTool, why string) {
		warnings = append(warnings, fantasy.CallWarning{
			Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: "tools.provider " + string(tool), Details: why,
		})
	}
	for _, tool := range chat.Provider {
		switch {
		case !toolpolicy.Allows(chat, webSearch):
			leaveOut(tool, "tools.allow or tools.deny of the chat or its ChatClass does not let it be called")
		case toolpolicy.NeedsApproval(chat, webSearch):
			leaveOut(tool, "its calls need approval, which the provider does not wait for")
		case tool == v1alpha1.ProviderWebSearch && spec.Provider == v1alpha1.ProviderAnthropic:
			own = append(own, anthropic.WebSearchTool(nil))
		case tool == v1alpha1.ProviderWebSearch && spec.Provider == v1alpha1.ProviderOpenAI &&
			spec.Transport == v1alpha1.TransportResponses:
			own = append(own, openai.WebSearchTool(nil))
		default:
			leaveOut(tool, "this provider has no such tool")
		}
	}
	return own, warnings
}
