// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cost"
)

// OverBudget is why the chat's budget does not let the model be asked: it is used up, or could not be kept. nil: it may
// be asked.
func (t *Target) OverBudget(chat *v1alpha1.Chat) *v1alpha1.GenerationError {
	if chat.Spec.Limits == nil || chat.Spec.Limits.Budget == nil {
		return nil
	}
	budget, pricing := chat.Spec.Limits.Budget, t.Config.Spec.Pricing
	switch {
	case cost.UsedUp(budget, chat.Status.Cost):
		return &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorBudgetExceeded,
			Message: fmt.Sprintf("The chat's budget of %s %s is used up", budget.Amount, budget.Currency),
			Advice:  "Raise spec.limits.budget",
		}
	case pricing == nil || pricing.Currency != budget.Currency:
		return &v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorModelConfigInvalid,
			Message: fmt.Sprintf("The chat has a budget in %s, but ChatModelConfig %s has no prices in it",
				budget.Currency, t.Config.Name),
			Advice: "Set spec.pricing there, or change spec.limits.budget of the chat",
		}
	}
	return nil
}
