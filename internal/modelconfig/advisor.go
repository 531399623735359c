// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"cmp"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// Advisor is the advisor that a chat has, nil if it has none. answers is the ChatModelConfig that the chat names, nil
// if there is none: its policy fills in what the chat does not say, and bounds what it does.
func Advisor(spec *v1alpha1.ChatSpec, answers *v1alpha1.ChatModelConfig) *v1alpha1.ChatAdvisor {
	policy := &v1alpha1.AdvisorPolicy{Mode: v1alpha1.AdvisorOptIn}
	if answers != nil && answers.Spec.Advisor != nil {
		policy = answers.Spec.Advisor
	}
	own := spec.Advisor
	switch {
	case spec.ParentRef != nil || policy.Mode == v1alpha1.AdvisorForbidden:
		return nil
	case own == nil && policy.Mode == v1alpha1.AdvisorOptOut:
		own = &v1alpha1.ChatAdvisor{Enabled: true}
	case own == nil || !own.Enabled:
		return nil
	}
	advisor := *own
	if advisor.ModelConfigRef == nil {
		advisor.ModelConfigRef = policy.ModelConfigRef
	}
	advisor.ReasoningEffort = cmp.Or(advisor.ReasoningEffort, policy.ReasoningEffort)
	advisor.MaxUses = atMost(advisor.MaxUses, policy.MaxUses)
	advisor.MaxOutputTokens = atMost(advisor.MaxOutputTokens, policy.MaxOutputTokens)
	return &advisor
}

// atMost is the value within its ceiling, which is also the default; nil: there is none.
func atMost[N int32 | int64](value, ceiling *N) *N {
	if value == nil || ceiling == nil {
		return cmp.Or(value, ceiling)
	}
	return new(min(*value, *ceiling))
}

// AdvisorOf is the name of the ChatModelConfig that gives the chat advice; empty if the chat has no advisor, or the
// model that answers is its own.
func AdvisorOf(spec *v1alpha1.ChatSpec, answers *v1alpha1.ChatModelConfig) string {
	if advisor := Advisor(spec, answers); advisor != nil && advisor.ModelConfigRef != nil {
		return advisor.ModelConfigRef.Name
	}
	return ""
}

// NoAdvice is why the advisor of a chat can give no advice, as far as it is known before it is asked; nil if it can.
// answers is the ChatModelConfig that the chat names, config the one that AdvisorOf names, nil if it does not exist.
func NoAdvice(spec *v1alpha1.ChatSpec, answers, config *v1alpha1.ChatModelConfig) *v1alpha1.GenerationError {
	name := AdvisorOf(spec, answers)
	if name == "" {
		return nil
	}
	named := "spec.advisor.modelConfigRef"
	if spec.Advisor == nil || spec.Advisor.ModelConfigRef == nil {
		named += " of ChatModelConfig " + answers.Name
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
