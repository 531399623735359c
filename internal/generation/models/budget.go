// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/budget"
)

// OverBudget is why the budgets of the chat and of those above do not let the model be called once the chat itself has
// cost so much; nil: it may be called. What others have spent since the attempt began does not count yet.
func (t *Target) OverBudget(chat *v1alpha1.Chat, spent []v1alpha1.Cost) *v1alpha1.GenerationError {
	return budget.Refuse(chat.Status.Internal.Budgets, spent, budget.CallOf(t.Config))
}
