// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "parley.dev/parley/api/v1beta1"

// Finish is an attempt that is done: a reply with these calls, or the results of the calls that Parley runs itself.
// Somebody may have asked it to stop just then.
func (c *Chat) Finish(name string, calls ...Call) {
	if c.Attempt.Action == v1beta1.ActionCompact {
		c.summarize(name)
	} else {
		c.commit(name, calls)
	}
	c.finished()
}

// Stop is an attempt at running tools that is done, and one of them is a tool after whose success the turn ends.
func (c *Chat) Stop(name string) {
	c.commit(name, nil).Stops = true
	c.finished()
}

func (c *Chat) finished() {
	if c.Phase == v1beta1.ChatInterrupting {
		c.end(v1beta1.TurnInterrupted)
		return
	}
	c.goOn()
}

func (c *Chat) commit(name string, calls []Call) *Message {
	m := &Message{Name: name, Role: v1beta1.RoleAssistant, Calls: calls}
	if c.Attempt.Action == v1beta1.ActionExecuteTools {
		m.Role = v1beta1.RoleTool
		own, _ := c.outstanding()
		for _, call := range own {
			m.Answers = append(m.Answers, call.ID)
		}
	} else {
		c.replies = someReplies
		c.spent++
	}
	c.History = append(c.History, m)
	c.user().Turn.Decided, c.user().Turn.CallsCanceled = nil, false
	return m
}

// Fail is an attempt that ends in an error. The queue stays: its messages would most likely fail in the same way.
func (c *Chat) Fail(reason v1beta1.ErrorReason) {
	if c.Phase == v1beta1.ChatInterrupting {
		c.end(v1beta1.TurnInterrupted)
		return
	}
	if reason == v1beta1.ErrorContextTooLong && c.Attempt.Action == v1beta1.ActionGenerateAssistant && c.compactable() {
		c.compact()
		return
	}
	c.fail(reason)
}

// fail ends the turn with an error.
func (c *Chat) fail(reason v1beta1.ErrorReason) {
	if turn := &c.user().Turn; turn.Result == "" {
		turn.Result, turn.Failure = v1beta1.TurnFailed, reason
	}
	c.Phase, c.Error, c.Attempt, c.compacting = v1beta1.ChatError, reason, nil, false
	c.putAway()
}

// FailForNow is an attempt that ends in an error that may pass: another one follows, in a while.
func (c *Chat) FailForNow() {
	losses := c.Attempt.losses
	switch {
	case c.Phase == v1beta1.ChatInterrupting:
		c.end(v1beta1.TurnInterrupted)
	case c.held() || c.blockedBy() != "":
		c.failed, c.losses, c.Attempt = c.Attempt.Number, losses, nil
		c.endHeld()
	default:
		c.againLater(losses)
	}
}

// againLater makes a step again of which an attempt has failed, after a wait, which leaves its place to others.
func (c *Chat) againLater(losses int) {
	failed := c.Attempt.Number
	c.Attempt = nil
	c.HandOut()
	c.again(failed, losses)
}

// again makes a step again of which an attempt has failed. It does not wait for the sub-chat a second time.
func (c *Chat) again(failed, losses int) {
	c.goOn()
	if c.Phase != v1beta1.ChatRunning {
		return
	}
	if c.Attempt == nil && c.blockedBy() == "" && c.waits() && c.isLet() {
		c.Attempt = &Attempt{Action: v1beta1.ActionExecuteTools}
	}
	if c.Attempt == nil {
		c.failed, c.losses = failed, losses
		return
	}
	c.Attempt.Number, c.Attempt.losses = failed+1, losses
}

// Lose is an attempt that its pod has lost: another one tries again, the first time at once, unless the chat is
// suspended.
func (c *Chat) Lose() {
	losses := c.Attempt.losses + 1
	switch {
	case c.Phase == v1beta1.ChatInterrupting:
		c.end(v1beta1.TurnInterrupted)
	case c.held():
		c.failed, c.losses, c.Attempt = c.Attempt.Number, losses, nil
		c.endHeld()
	case losses > 1:
		c.againLater(losses)
	default:
		c.again(c.Attempt.Number, losses)
	}
}

// HandOver is an attempt that was told to stop and hands over what it has. It is kept, and its calls are given up.
func (c *Chat) HandOver(name string, calls ...Call) {
	if c.Phase != v1beta1.ChatInterrupting { // Nobody has asked for that, or no longer.
		c.Lose()
		return
	}
	c.commit(name, calls).Partial = true
	c.end(v1beta1.TurnInterrupted)
}

// HandOverNothing is an attempt that was told to stop before it had anything.
func (c *Chat) HandOverNothing() { c.Lose() }
