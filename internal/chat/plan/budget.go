// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cost"
)

// binding is a budget that binds the chat, and what was spent of it.
type binding struct {
	*v1alpha1.Budget

	spent []v1alpha1.Cost
	// of is the chat above that has the budget; empty: this one has it.
	of string
	// shared is true if others have spent of it, too.
	shared bool
}

type bindings []binding

// budgets are those that bind the chat: its own, for which the chats below count, and those of the chats above.
func (p modelChoice) budgets() (all bindings) {
	own := p.status().Cost
	if limits := p.chat.Spec.Limits; limits != nil && limits.Budget != nil {
		all = append(all, binding{limits.Budget, cost.Sum(own, p.facts.CostBelow), "", len(p.facts.CostBelow) > 0})
	}
	for _, above := range p.facts.BudgetsAbove {
		all = append(all, binding{above.Budget, cost.Sum(above.Others, own), above.Chat, true})
	}
	return all
}

// usedUp is the first budget that is used up; nil if none is.
func (all bindings) usedUp() *binding {
	for i := range all {
		if cost.UsedUp(all[i].Budget, all[i].spent) {
			return &all[i]
		}
	}
	return nil
}

// exceeded is the error of a turn that may not spend any more.
func (all bindings) exceeded() v1alpha1.GenerationError {
	b := all.usedUp()
	who, advice := "The chat", "Raise spec.limits.budget and send a message to continue, or start a new chat"
	has := " has"
	if b.shared {
		has = " and its sub-chats have"
	}
	if b.of != "" {
		who = "Chat " + b.of
		advice = fmt.Sprintf("Raise spec.limits.budget of chat %s and send a message to continue", b.of)
	}
	return v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorBudgetExceeded,
		Message: fmt.Sprintf("%s%s cost %s, and its budget is %s %s", who, has,
			cost.String(cost.Spent(b.spent, b.Currency), b.Currency), b.Amount, b.Currency),
		Advice: advice,
	}
}

// unpriced is why a budget cannot be kept: what the model costs is not known in its currency. Such a call is not made.
// The caller has made sure that there is a model.
func (p modelChoice) unpriced(action v1alpha1.GenerationAction) *v1alpha1.GenerationError {
	all := p.budgets()
	if len(all) == 0 || action == v1alpha1.ActionExecuteTools {
		return nil
	}
	model := p.retry().nextModel(action)
	for _, b := range all {
		if model.Currency == b.Currency {
			continue
		}
		who := "The chat"
		if b.of != "" {
			who = "Chat " + b.of
		}
		return &v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorModelConfigInvalid,
			Message: fmt.Sprintf("%s has a budget in %s, but ChatModelConfig %s has no prices in it", who, b.Currency,
				model.Config),
			Advice: "Set spec.pricing there, or change spec.limits.budget of the chat, then send a message to continue",
		}
	}
	return nil
}
