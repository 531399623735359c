// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/models"
)

func TestAModelIsAskedOnlyWithinTheChatsBudget(t *testing.T) {
	budget := &v1alpha1.ChatLimits{Budget: &v1alpha1.Budget{Amount: "1", Currency: "EUR"}}
	euros, dollars := &v1alpha1.Pricing{Currency: "EUR"}, &v1alpha1.Pricing{Currency: "USD"}
	for name, c := range map[string]struct {
		limits  *v1alpha1.ChatLimits
		pricing *v1alpha1.Pricing
		spent   int64
		want    v1alpha1.ErrorReason
	}{
		"no limits":               {nil, nil, 0, ""},
		"no budget":               {&v1alpha1.ChatLimits{}, dollars, 0, ""},
		"a budget with room":      {budget, euros, 999_999, ""},
		"a budget that is used":   {budget, euros, 1_000_000, v1alpha1.ErrorBudgetExceeded},
		"prices in another":       {budget, dollars, 0, v1alpha1.ErrorModelConfigInvalid},
		"no prices":               {budget, nil, 0, v1alpha1.ErrorModelConfigInvalid},
		"used, and prices differ": {budget, dollars, 1_000_000, v1alpha1.ErrorBudgetExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Limits: c.limits}}
			chat.Status.Cost = []v1alpha1.Cost{{Currency: "EUR", MicroUnits: c.spent}}
			target := models.Target{Config: &v1alpha1.ChatModelConfig{Spec: v1alpha1.ChatModelConfigSpec{Pricing: c.pricing}}}
			got := target.OverBudget(chat)
			if (got == nil) != (c.want == "") || got != nil && got.Reason != c.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}
