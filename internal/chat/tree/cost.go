// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

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

// CostBelow is what the chats below the chat have cost, without those that its status counts as deleted.
func (f *Family) CostBelow(chat *v1beta1.Chat) []v1beta1.Cost {
	return f.costOf(f.uncounted(chat, nil), "")
}

// BudgetsAbove are those that bind the chat, nearest first. above are the chats above it, with the settings in force.
func (f *Family) BudgetsAbove(chat *v1beta1.Chat, above []*v1beta1.Chat) (all []BudgetAbove) {
	for _, ancestor := range above {
		limits := ancestor.Spec.Limits
		if limits == nil || limits.Budget == nil {
			continue
		}
		family := append(f.uncounted(ancestor, nil), ancestor)
		all = append(all, BudgetAbove{Chat: ancestor.Name, Budget: limits.Budget, Others: f.costOf(family, chat.Name)})
	}
	return all
}

// CostOfDeletion is what a chat that is being deleted has cost, together with the chats below it, which are deleted
// with it. Deletions that a chat above has counted are left out.
func (f *Family) CostOfDeletion(chat *v1beta1.Chat, counted []string) []v1beta1.Cost {
	return f.costOf(append(f.uncounted(chat, counted), chat), "")
}

// costOf is what the chats have cost, and those that were deleted below them. Of the one called self it leaves out what
// that one has cost itself, which knows better.
func (f *Family) costOf(chats []*v1beta1.Chat, self string) (sum []v1beta1.Cost) {
	for _, member := range chats {
		sum = cost.Sum(sum, member.Status.DeletedCost)
		if member.Name != self {
			sum = cost.Sum(sum, member.Status.Cost)
		}
	}
	return sum
}

// uncounted are the chats below the chat but for those whose deletion is counted, by it, by a chat between or by the
// caller, and those that are left of an earlier chat of the name of their parent; nor what is below those.
func (f *Family) uncounted(chat *v1beta1.Chat, counted []string) (left []*v1beta1.Chat) {
	below := f.Descendants(chat)
	gone := map[string]bool{}
	counted = slices.Concat(counted, chat.Status.Internal.CountedDeletions)
	for _, member := range below {
		counted = append(counted, member.Status.Internal.CountedDeletions...)
	}
	for _, member := range below { // Parents come before their children.
		if gone[member.Spec.ParentRef.Name] || slices.Contains(counted, string(member.UID)) || !f.isOfItsParent(member) {
			gone[member.Name] = true
			continue
		}
		left = append(left, member)
	}
	return left
}

// isOfItsParent reports whether the chat of the name of its parent is the one that the sub-chat began below.
func (f *Family) isOfItsParent(sub *v1beta1.Chat) bool {
	parent, began := f.byName[sub.Spec.ParentRef.Name], sub.Status.Internal.ParentUID
	return parent != nil && (began == "" || began == string(parent.UID))
}

// AncestorsAlive are the chats above the chat, nearest first, up to one that is gone.
func (f *Family) AncestorsAlive(chat *v1beta1.Chat) (above []*v1beta1.Chat) {
	all, _ := f.Ancestors(chat)
	for _, ancestor := range all {
		if !f.isOfItsParent(chat) {
			return above
		}
		above, chat = append(above, ancestor), ancestor
	}
	return above
}

// Payer is the nearest of the chats above that is not being deleted and has a budget: what a chat below it has cost
// counts there once it is deleted. It is nil if there is none. above are the chats above, nearest first, with the
// settings in force; between are those below the payer.
func Payer(above []*v1beta1.Chat) (payer *v1beta1.Chat, between []*v1beta1.Chat) {
	for i, ancestor := range above {
		if limits := ancestor.Spec.Limits; ancestor.DeletionTimestamp.IsZero() && limits != nil && limits.Budget != nil {
			return ancestor, above[:i]
		}
	}
	return nil, nil
}
