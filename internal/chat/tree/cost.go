// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cost"
)

// BudgetAbove is the budget of a chat above another one, which counts for that one, too.
type BudgetAbove struct {
	// Chat that has it.
	Chat string
	// Budget of that chat and all below it.
	Budget *v1alpha1.Budget
	// Others is what all of these have cost but for the one that is bound by it.
	Others []v1alpha1.Cost
}

// CostBelow is what the chats below the chat have cost.
func (f *Family) CostBelow(chat *v1alpha1.Chat) (sum []v1alpha1.Cost) {
	for _, member := range f.Descendants(chat) {
		sum = cost.Sum(sum, member.Status.Cost)
	}
	return sum
}

// BudgetsAbove are those that bind the chat, nearest first. above are the chats above it, with the settings in force.
func (f *Family) BudgetsAbove(chat *v1alpha1.Chat, above []*v1alpha1.Chat) (all []BudgetAbove) {
	for _, ancestor := range above {
		limits := ancestor.Spec.Limits
		if limits == nil || limits.Budget == nil {
			continue
		}
		others := ancestor.Status.Cost
		for _, member := range f.Descendants(ancestor) {
			if member.Name != chat.Name { // Of itself it knows better.
				others = cost.Sum(others, member.Status.Cost)
			}
		}
		all = append(all, BudgetAbove{Chat: ancestor.Name, Budget: limits.Budget, Others: others})
	}
	return all
}
