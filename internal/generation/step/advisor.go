// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/modelconfig"
)

// WithAdvisorInForce is the chat with the advisor that it has by its own word and by that of the ChatModelConfig which
// it names. While that one cannot be asked, a model is not offered it. A call that has been made is answered: by why
// there is no advice.
func (s *Steps) WithAdvisorInForce(chat *v1alpha1.Chat) *v1alpha1.Chat {
	answers, _ := modelconfig.Resolve(s.options.Models.Configs(), &chat.Spec)
	advised := *chat
	advised.Spec.Advisor = modelconfig.Advisor(&chat.Spec, answers)
	unavailable := meta.IsStatusConditionTrue(chat.Status.Conditions, v1alpha1.ConditionAdvisorUnavailable)
	if unavailable && chat.Status.Generation.Action != v1alpha1.ActionExecuteTools {
		advised.Spec.Advisor = nil
	}
	return &advised
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
	if err := t.OverBudget(chat); err != nil {
		return nil, err
	}
	bounded := *t
	bounded.Config = t.Config.DeepCopy()
	most := min(spec.MaxOutputTokensOrDefault(), t.Config.Spec.MaxOutputTokensOrDefault())
	bounded.Config.Spec.MaxOutputTokens = &most
	bounded.Config.Spec.ProviderOptions = withoutStore(bounded.Config.Spec.ProviderOptions)
	return &bounded, nil
}
