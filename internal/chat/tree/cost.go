// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
)

// BudgetAbove is the budget of a chat above another one, which counts for that one, too.
type BudgetAbove struct {
	// Chat that has it.
	Chat string
	// Budget of that chat and all below it.
	Budget *v1beta1.Budget
	// Others is what all of these have cost but for the one that is bound by it.
	Others []v1beta1.Cost
}

// BudgetsAbove are those that bind the chat, nearest first. above are the chats above it, with the settings in force.
func (f *Family) BudgetsAbove(chat *v1beta1.Chat, above []*v1beta1.Chat) (all []BudgetAbove) {
	for _, ancestor := range above {
		if !HasBudget(ancestor) {
			continue
		}
		others := cost.Sum(ancestor.Status.Cost, ancestor.Status.DeletedCost)
		for _, member := range f.CostsBelow(ancestor, nil, nil).Now {
			if member.UID != string(chat.UID) { // The chat knows its own cost better.
				others = cost.Sum(others, member.Cost)
			}
		}
		all = append(all, BudgetAbove{Chat: ancestor.Name, Budget: ancestor.Spec.Limits.Budget, Others: others})
	}
	return all
}

// HasBudget reports whether the settings of the chat have a budget.
func HasBudget(chat *v1beta1.Chat) bool {
	return chat.Spec.Limits != nil && chat.Spec.Limits.Budget != nil
}

// CountsSubChats reports whether a budget of the chat counts the chats below, or did when its status was written.
func CountsSubChats(chat *v1beta1.Chat) bool {
	return HasBudget(chat) || len(chat.Status.Internal.SubChatCosts) > 0
}

// Costs is what the chats below a chat with a budget have cost.
type Costs struct {
	// Now is the record that the chat's status should have.
	Now []v1beta1.SubChatCost
	// AtRest is the same, but of chats with a turn it has what the status has: their next step would outdate it.
	AtRest []v1beta1.SubChatCost
	// Deleted is what those have cost that the record no longer has because they were deleted.
	Deleted []v1beta1.Cost
}

// Below is what the chats of the record have cost.
func (c *Costs) Below() (sum []v1beta1.Cost) {
	for _, entry := range c.Now {
		sum = cost.Sum(sum, entry.Cost)
	}
	return sum
}

// CostsBelow is what the chats below the chat have cost. isDeleted reports whether a chat of the record that is not
// below it was deleted, and what it had cost then; nil: that is not known. Otherwise the family is older than the
// record, which keeps its entry. exists reports whether a chat that the record lacks is surely there; nil: all are.
// Else the family may be older than the record, which has already counted its deletion.
func (f *Family) CostsBelow(chat *v1beta1.Chat, isDeleted func(v1beta1.SubChatCost) ([]v1beta1.Cost, bool),
	exists func(v1beta1.SubChatCost) bool) (c Costs) {
	below := f.below(chat)
	for _, entry := range chat.Status.Internal.SubChatCosts {
		member := below[entry.UID]
		delete(below, entry.UID)
		if member == nil && isDeleted != nil {
			if last, deleted := isDeleted(entry); deleted {
				c.Deleted = cost.Sum(c.Deleted, last)
				continue
			}
		}
		c.add(entry, member)
	}
	for uid, member := range below {
		if entry := (v1beta1.SubChatCost{Name: member.Name, UID: uid}); exists == nil || exists(entry) {
			c.add(entry, member)
		}
	}
	return c
}

// add adds a chat to the record. before is what the record has of it, and member the chat; nil: it is missing.
func (c *Costs) add(before v1beta1.SubChatCost, member *v1beta1.Chat) {
	before = *before.DeepCopy()
	now := before
	if member != nil {
		now.Cost = cost.Newer(before.Cost, member.Status.Cost) // The cache can be older than the record.
	}
	c.Now = append(c.Now, now)
	if member == nil || !member.Status.Phase.HasTurn() {
		before = now
	}
	c.AtRest = append(c.AtRest, before)
}

// below are the chats below the chat by UID. A chat whose parent was replaced by another one of its name is not among
// them, nor is what is below it.
func (f *Family) below(chat *v1beta1.Chat) map[string]*v1beta1.Chat {
	below, left := map[string]*v1beta1.Chat{}, map[string]bool{}
	for _, member := range f.Descendants(chat) { // Parents come before their children.
		if left[member.Spec.ParentRef.Name] || !f.isOfItsParent(member) {
			left[member.Name] = true
			continue
		}
		below[string(member.UID)] = member
	}
	return below
}

// isOfItsParent reports whether the chat of the name of its parent is the one that the sub-chat began below.
func (f *Family) isOfItsParent(sub *v1beta1.Chat) bool {
	parent, began := f.byName[sub.Spec.ParentRef.Name], sub.Status.Internal.ParentUID
	return parent != nil && (began == "" || began == string(parent.UID))
}
