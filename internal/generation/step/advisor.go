// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/models"
)

// Settle is the chat with what is in force of its settings: without an advisor that cannot be asked, and within its
// mode.
func (s *Steps) Settle(chat *v1alpha1.Chat) *v1alpha1.Chat {
	return s.options.Tools.InMode(withAdvisorAvailable(chat))
}

// withAdvisorAvailable is the chat without an advisor that cannot be asked: no model is offered it. A call that has
// been made is answered: by why there is no advice.
func withAdvisorAvailable(chat *v1alpha1.Chat) *v1alpha1.Chat {
	unavailable := meta.IsStatusConditionTrue(chat.Status.Conditions, v1alpha1.ConditionAdvisorUnavailable)
	if !unavailable || chat.Status.Generation.Action == v1alpha1.ActionExecuteTools {
		return chat
	}
	without := *chat
	without.Spec.Advisor = nil
	return &without
}

// target is the model that gives advice, with settings for that: the bound on its length, and nothing that its
// provider stores.
func (c *consultation) target(ctx context.Context) (*models.Target, *v1alpha1.GenerationError) {
	chat := c.performer.chat
	spec, name := chat.Spec.Advisor, chat.Status.Generation.ModelConfig
	if spec.ModelConfigRef != nil {
		name = spec.ModelConfigRef.Name
	}
	t, err := c.performer.steps.options.Models.Target(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := t.OverBudget(chat, chat.Status.Cost); err != nil {
		return nil, err
	}
	bounded := *t
	bounded.Config = t.Config.DeepCopy()
	most := min(spec.MaxOutputTokensOrDefault(), t.Config.Spec.MaxOutputTokensOrDefault())
	bounded.Config.Spec.MaxOutputTokens = &most
	bounded.Config.Spec.ProviderOptions = withoutStore(bounded.Config.Spec.ProviderOptions)
	return &bounded, nil
}
