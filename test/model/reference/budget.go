// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// SetBudget changes how many replies and summaries the chat may pay for, together with its sub-chat; 0: any number. A
// turn that was held goes on when the budget allows its next step.
func (c *Chat) SetBudget(replies int) {
	c.Limits.Budget = replies
	for _, member := range c.family() {
		member.Proceed()
	}
}

// unaffordable reports whether the next step calls a model, and a budget of the chat or of the chat above is reached.
// Calls of tools cost nothing.
func (c *Chat) unaffordable() bool {
	if own, _ := c.outstanding(); len(own) > 0 {
		return false
	}
	return c.isBudgetReached() || c.above != nil && c.above.isBudgetReached()
}

func (c *Chat) isBudgetReached() bool { return c.Limits.Budget > 0 && c.Spent() >= c.Limits.Budget }

// Spent is how many replies and summaries the chat and its sub-chat have paid for.
func (c *Chat) Spent() (n int) {
	for _, member := range c.family() {
		n += member.spent
	}
	return n
}

// isOverBudget reports whether nothing but a budget keeps a turn from its next step.
func (c *Chat) isOverBudget() bool {
	return c.Phase == v1beta1.ChatRunning && c.Attempt == nil && !c.held() && c.blockedBy() == "" && c.unaffordable()
}

// heldBy is the error that ends a turn which waits for its next step, if its chat is to be archived: that waits for no
// money, no class and no model. Empty: nothing of that kind holds it.
func (c *Chat) heldBy() v1beta1.ErrorReason {
	switch {
	case c.Phase != v1beta1.ChatRunning || c.Attempt != nil || c.held():
		return ""
	case c.isOverBudget():
		return v1beta1.ErrorBudgetReached
	}
	return c.blockedBy()
}

// endHeld ends the turns of a family that is to be archived, as far as something holds them that it does not wait for.
func (c *Chat) endHeld() {
	for _, member := range slices.Backward(c.family()) {
		if why := member.heldBy(); why != "" && member.toArchive() {
			member.fail(why)
		}
	}
}

// HasBudget reports whether the chat, its sub-chat or a peer has a budget.
func (c *Chat) HasBudget() bool {
	return slices.ContainsFunc(c.All(), func(m *Chat) bool { return m.Limits.Budget > 0 })
}
