// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/chat/tree"
)

// subChatCosts remembers what chats below budgets have cost: the record in the status of the chat with the budget lacks
// what a turn has cost since the newest write. Losing it is harmless: a deleted chat then counts with what the record
// has.
type subChatCosts struct {
	mu sync.Mutex
	// below are the costs by the chat with the budget and the UID of the chat below.
	below map[types.NamespacedName]map[string][]v1beta1.Cost
}

// put remembers what a chat below the budgets has cost.
func (c *subChatCosts) put(chat *v1beta1.Chat, budgets []tree.BudgetAbove, costs []v1beta1.Cost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, budget := range budgets {
		key := types.NamespacedName{Namespace: chat.Namespace, Name: budget.Chat}
		if c.below == nil {
			c.below = map[types.NamespacedName]map[string][]v1beta1.Cost{}
		}
		if c.below[key] == nil {
			c.below[key] = map[string][]v1beta1.Cost{}
		}
		uid := string(chat.UID)
		c.below[key][uid] = cost.Newer(c.below[key][uid], costs) // A pass that writes nothing may have read an old chat.
	}
}

// last is the newest known cost of the chat of the record.
func (c *subChatCosts) last(budgetOf types.NamespacedName, entry v1beta1.SubChatCost) []v1beta1.Cost {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cost.Newer(entry.Cost, c.below[budgetOf][entry.UID])
}

// retain forgets the chats below that are not in the record.
func (c *subChatCosts) retain(budgetOf types.NamespacedName, record []v1beta1.SubChatCost) {
	recorded := make(map[string]bool, len(record))
	for _, entry := range record {
		recorded[entry.UID] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	below := c.below[budgetOf]
	maps.DeleteFunc(below, func(uid string, _ []v1beta1.Cost) bool { return !recorded[uid] })
	if len(below) == 0 {
		delete(c.below, budgetOf)
	}
}
