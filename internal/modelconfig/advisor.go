// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// AdvisorOf is the name of the ChatModelConfig that spec.advisor of a chat names; empty if the chat has no advisor, or the
// model that answers is its own.
func AdvisorOf(spec *v1alpha1.ChatSpec) string {
	if !spec.HasAdvisor() || spec.Advisor.ModelConfigRef == nil {
		return ""
	}
	return spec.Advisor.ModelConfigRef.Name
}

// NoAdvice is why the advisor that a chat names can give no advice, as far as it is known before it is asked; nil if it can.
// config is the ChatModelConfig of that name, nil if it does not exist.
func NoAdvice(spec *v1alpha1.ChatSpec, config *v1alpha1.ChatModelConfig) *v1alpha1.GenerationError {
	name := AdvisorOf(spec)
	if name == "" {
		return nil
	}
	if config == nil {
		return &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorModelConfigNotFound,
			Message: fmt.Sprintf("ChatModelConfig %s, which spec.advisor.modelConfigRef names, does not exist", name),
			Advice:  "Create it, or change the reference",
		}
	}
	if wrong := CheckOptions(&config.Spec); wrong != nil {
		return &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorModelConfigInvalid,
			Message: fmt.Sprintf("ChatModelConfig %s, which spec.advisor.modelConfigRef names, cannot be used: %s", name, wrong),
			Advice:  "Correct it, or change the reference",
		}
	}
	if spec.Limits == nil || spec.Limits.Budget == nil {
		return nil
	}
	if budget := spec.Limits.Budget; config.Spec.Pricing == nil || config.Spec.Pricing.Currency != budget.Currency {
		return &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorModelConfigInvalid,
			Message: fmt.Sprintf("The chat has a budget in %s, but ChatModelConfig %s, which spec.advisor.modelConfigRef names, has no prices in it", budget.Currency, name),
			Advice:  "Set spec.pricing there, or change spec.limits.budget of the chat",
		}
	}
	return nil
}
