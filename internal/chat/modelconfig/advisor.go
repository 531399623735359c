// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"fmt"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/budget"
)

// AdvisorOf is the name of the ChatModelConfig that gives the chat advice; empty if the chat has no advisor, or the
// model that answers is its own.
func AdvisorOf(spec *v1beta1.ChatSpec) string {
	if spec.ParentRef != nil || !spec.Advisor.On() || spec.Advisor.ModelConfigRef == nil {
		return ""
	}
	return spec.Advisor.ModelConfigRef.Name
}

// NoAdvice is why the advisor of a chat can give no advice, as far as it is known before it is asked; nil if it can.
// config is the ChatModelConfig that AdvisorOf names, nil if it does not exist.
func NoAdvice(spec *v1beta1.ChatSpec, config *v1beta1.ChatModelConfig) *v1beta1.GenerationError {
	name, named := AdvisorOf(spec), "spec.advisor.modelConfigRef"
	if name == "" {
		return nil
	}
	if why := noAdviser(name, named, config); why != nil {
		return why
	}
	if spec.Limits == nil {
		return nil
	}
	return budget.Unpriced(budget.Effective(spec.Limits.Budget, nil, nil), budget.CallOf(config))
}

// noAdviser is why no chat can ask the ChatModelConfig, which named names; nil if chats can.
func noAdviser(name, named string, config *v1beta1.ChatModelConfig) *v1beta1.GenerationError {
	if config == nil {
		return &v1beta1.GenerationError{
			Reason:  v1beta1.ErrorModelConfigNotFound,
			Message: fmt.Sprintf("ChatModelConfig %s, which %s names, does not exist", name, named),
			Advice:  "Create it, or change the reference",
		}
	}
	if config.Spec.Disabled {
		return &v1beta1.GenerationError{
			Reason:  v1beta1.ErrorModelConfigDisabled,
			Message: fmt.Sprintf("ChatModelConfig %s, which %s names, is disabled", name, named),
			Advice:  "Change the reference, or take spec.disabled out of it",
		}
	}
	return nil
}
