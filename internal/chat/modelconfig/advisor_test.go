// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
)

func TestWhyTheAdvisorGivesNoAdvice(t *testing.T) {
	named := v1beta1.ChatAdvisor{Enabled: new(true), ModelConfigRef: &v1beta1.ModelConfigReference{Name: "strong"}}
	usable := config("strong", false)
	usable.Spec.Provider = v1beta1.ProviderOpenAICompatible
	priced := *usable.DeepCopy()
	priced.Spec.Pricing = &v1beta1.Pricing{Currency: "USD"}
	budget := &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "1"}}
	for name, c := range map[string]struct {
		spec   v1beta1.ChatSpec
		config *v1beta1.ChatModelConfig
		reason v1beta1.ErrorReason
		says   string
	}{
		"no advisor": {spec: v1beta1.ChatSpec{}},
		"one that is off": {
			spec: v1beta1.ChatSpec{Advisor: &v1beta1.ChatAdvisor{ModelConfigRef: named.ModelConfigRef}}},
		"one of a sub-chat": {spec: v1beta1.ChatSpec{Advisor: &named,
			ParentRef: &v1beta1.ChatReference{Name: "p"}}},
		"the model that answers": {spec: v1beta1.ChatSpec{Advisor: &v1beta1.ChatAdvisor{Enabled: new(true)}}},
		"one that can be asked":  {spec: v1beta1.ChatSpec{Advisor: &named}, config: &usable},
		"one with prices":        {spec: v1beta1.ChatSpec{Advisor: &named, Limits: budget}, config: &priced},
		"limits that are no budget": {spec: v1beta1.ChatSpec{Advisor: &named, Limits: &v1beta1.ChatLimits{}},
			config: &usable},
		"a missing ChatModelConfig": {v1beta1.ChatSpec{Advisor: &named}, nil, v1beta1.ErrorModelConfigNotFound,
			"ChatModelConfig strong, which spec.advisor.modelConfigRef names, does not exist. Create it, or change the " +
				"reference"},
		"a budget without prices": {v1beta1.ChatSpec{Advisor: &named, Limits: budget}, &usable,
			v1beta1.ErrorModelPriceMissing,
			"The chat has a budget in USD, but ChatModelConfig strong has no prices in it. Set"},
	} {
		t.Run(name, func(t *testing.T) {
			got := NoAdvice(&c.spec, c.config)
			switch {
			case c.reason == "" && got != nil:
				t.Errorf("got %+v", got)
			case c.reason != "" && (got == nil || got.Reason != c.reason || !strings.HasPrefix(got.Text(), c.says)):
				t.Errorf("got %+v, want %s: %s", got, c.reason, c.says)
			}
		})
	}
}
