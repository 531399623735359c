// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// AdvisorOf is the name of the ChatModelConfig that gives the chat advice; empty if the chat has no advisor, or the
// model that answers is its own.
func AdvisorOf(spec *v1alpha1.ChatSpec) string {
	if spec.ParentRef != nil || !spec.Advisor.On() || spec.Advisor.ModelConfigRef == nil {
		return ""
	}
	return spec.Advisor.ModelConfigRef.Name
}

// NoAdvice is why the advisor of a chat can give no advice, as far as it is known before it is asked; nil if it can.
// config is the ChatModelConfig that AdvisorOf names, nil if it does not exist.
func NoAdvice(spec *v1alpha1.ChatSpec, config *v1alpha1.ChatModelConfig) *v1alpha1.GenerationError {
	name, named := AdvisorOf(spec), "spec.advisor.modelConfigRef"
	if name == "" {
		return nil
	}
	if why := noAdviser(name, named, config); why != nil {
		return why
	}
	if spec.Limits == nil || spec.Limits.Budget == nil {
		return nil
	}
	if budget := spec.Limits.Budget; config.Spec.Pricing == nil || config.Spec.Pricing.Currency != budget.Currency {
		return &v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorModelConfigInvalid,
			Message: fmt.Sprintf("The chat has a budget in %s, but ChatModelConfig %s, which %s names, has no prices in it",
				budget.Currency, name, named),
			Advice: "Set spec.pricing there, or change spec.limits.budget of the chat",
		}
	}
	return nil
}

// noAdviser is why a ChatModelConfig, which named names, can be asked by nobody; nil if it can.
func noAdviser(name, named string, config *v1alpha1.ChatModelConfig) *v1alpha1.GenerationError {
	if config == nil {
		return &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorModelConfigNotFound,
			Message: fmt.Sprintf("ChatModelConfig %s, which %s names, does not exist", name, named),
			Advice:  "Create it, or change the reference",
		}
	}
	if config.Spec.Disabled {
		return &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorModelConfigDisabled,
			Message: fmt.Sprintf("ChatModelConfig %s, which %s names, is disabled", name, named),
			Advice:  "Change the reference, or take spec.disabled out of it",
		}
	}
	return nil
}
