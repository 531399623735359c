// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"strings"

	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
)

// openAIEfforts are the efforts of OpenAI's protocols: all of them, in lower case.
var openAIEfforts = map[v1alpha1.ReasoningEffort]openai.ReasoningEffort{
	v1alpha1.EffortNone: openai.ReasoningEffortNone, v1alpha1.EffortMinimal: openai.ReasoningEffortMinimal,
	v1alpha1.EffortLow: openai.ReasoningEffortLow, v1alpha1.EffortMedium: openai.ReasoningEffortMedium,
	v1alpha1.EffortHigh: openai.ReasoningEffortHigh, v1alpha1.EffortXHigh: openai.ReasoningEffortXHigh,
	v1alpha1.EffortMax: openai.ReasoningEffortMax,
}

// openAIEffort sets the effort, if there is one.
func openAIEffort(set **openai.ReasoningEffort, effort v1alpha1.ReasoningEffort) {
	if effort != "" {
		*set = new(openAIEfforts[effort])
	}
}

// gatewayEffort is the effort as OpenRouter and Vercel call it: they know none above xhigh.
func gatewayEffort(effort v1alpha1.ReasoningEffort) v1alpha1.GatewayReasoningEffort {
	if effort == v1alpha1.EffortMax {
		effort = v1alpha1.EffortXHigh
	}
	return v1alpha1.GatewayReasoningEffort(strings.ToLower(string(effort)))
}

// ThinksOnlyIfTold reports whether the provider's models think only where they are told to, so that all of them can be
// told not to: Claude. It refuses a call that leaves no room for the thoughts that it is told to have.
func ThinksOnlyIfTold(p v1alpha1.ModelProvider) bool {
	return p == v1alpha1.ProviderAnthropic || p == v1alpha1.ProviderBedrock
}
