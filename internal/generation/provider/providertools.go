// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
)

// OwnTools are those of the tools that the provider of the configuration runs itself. The warnings name the others.
func OwnTools(spec *v1alpha1.ChatModelConfigSpec, wanted []v1alpha1.ProviderTool) (own []fantasy.Tool,
	warnings []fantasy.CallWarning) {
	for _, tool := range wanted {
		switch {
		case tool == v1alpha1.ProviderWebSearch && spec.Provider == v1alpha1.ProviderAnthropic:
			own = append(own, anthropic.WebSearchTool(nil))
		case tool == v1alpha1.ProviderWebSearch && spec.Provider == v1alpha1.ProviderOpenAI &&
			spec.Transport == v1alpha1.TransportResponses:
			own = append(own, openai.WebSearchTool(nil))
		default:
			warnings = append(warnings, fantasy.CallWarning{
				Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: "tools.provider " + string(tool),
				Details: "this provider has no such tool",
			})
		}
	}
	return own, warnings
}
