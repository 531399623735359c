// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider"
)

func TestToolsOfTheProviderAreOfferedWithinThePolicyAlone(t *testing.T) {
	claude := v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderAnthropic}
	patterns := func(p ...v1alpha1.ToolPattern) []v1alpha1.ToolPattern { return p }
	for name, c := range map[string]struct {
		spec   v1alpha1.ChatModelConfigSpec
		policy v1alpha1.ToolPolicy
		left   v1alpha1.ProviderToolReason
	}{
		"no policy":               {claude, v1alpha1.ToolPolicy{}, ""},
		"a policy that allows it": {claude, v1alpha1.ToolPolicy{Allow: patterns("web_*")}, ""},
		"one that allows others":  {claude, v1alpha1.ToolPolicy{Allow: patterns("execute")}, v1alpha1.ProviderToolNotAllowed},
		"one that denies it":      {claude, v1alpha1.ToolPolicy{Deny: patterns("*")}, v1alpha1.ProviderToolNotAllowed},
		"one that has it approved": {claude, v1alpha1.ToolPolicy{Approval: patterns("web_search")},
			v1alpha1.ProviderToolNeedsApproval},
		"OpenAI's Responses": {v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderOpenAI,
			Transport: v1alpha1.TransportResponses}, v1alpha1.ToolPolicy{}, ""},
		"Azure's Responses": {v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderAzure,
			Transport: v1alpha1.TransportResponses}, v1alpha1.ToolPolicy{}, ""},
		"OpenAI's chat protocol": {v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderOpenAI}, v1alpha1.ToolPolicy{},
			v1alpha1.ProviderToolNotSupported},
		"Google": {v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderGoogle}, v1alpha1.ToolPolicy{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			own, left := provider.OwnTools(&c.spec, &v1alpha1.ChatTools{ToolPolicy: c.policy,
				Provider: []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch}})
			why := v1alpha1.ProviderToolReason("")
			if len(left) == 1 {
				why = left[0].Reason
			}
			if why != c.left || (len(own) == 1) != (c.left == "") {
				t.Errorf("offered are %v, and not %v", own, left)
			}
		})
	}
}
