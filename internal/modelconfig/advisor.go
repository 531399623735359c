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
	switch {
	case name == "":
		return nil
	case config == nil:
		return noAdvice(v1alpha1.ErrorModelConfigNotFound, "ChatModelConfig %s, which spec.advisor.modelConfigRef names, does not exist. Create it, or change the reference", name)
	}
	if wrong := CheckOptions(&config.Spec); wrong != nil {
		return noAdvice(v1alpha1.ErrorModelConfigInvalid, "ChatModelConfig %s, which spec.advisor.modelConfigRef names, cannot be used: %s. Correct it, or change the reference", name, wrong)
	}
	if budget := budgetOf(spec); budget != nil && (config.Spec.Pricing == nil || config.Spec.Pricing.Currency != budget.Currency) {
		return noAdvice(v1alpha1.ErrorModelConfigInvalid, "The chat has a budget in %s, but ChatModelConfig %s, which spec.advisor.modelConfigRef names, has no prices in it. Set spec.pricing there, or change spec.limits.budget of the chat",
			budget.Currency, name)
	}
	return nil
}

func noAdvice(reason v1alpha1.ErrorReason, format string, args ...any) *v1alpha1.GenerationError {
	return &v1alpha1.GenerationError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func budgetOf(spec *v1alpha1.ChatSpec) *v1alpha1.Budget {
	if spec.Limits == nil {
		return nil
	}
	return spec.Limits.Budget
}
