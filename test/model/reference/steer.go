// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "parley.dev/parley/api/v1beta1"

// Interrupt is the annotation parley.dev/interrupt. Each token is one request.
func (c *Chat) Interrupt(token string) {
	if c.Requests[v1beta1.RequestInterrupt].Token == token {
		return
	}
	if c.Phase != v1beta1.ChatRunning && c.Phase != v1beta1.ChatRequiresAction {
		c.Requests[v1beta1.RequestInterrupt] = Request{token, v1beta1.RequestRefused}
		return
	}
	c.Requests[v1beta1.RequestInterrupt] = Request{token, v1beta1.RequestDone}
	c.stop()
}

// stop stops what is under way. An attempt hands over what it has before the turn ends; calls that wait are cancelled.
func (c *Chat) stop() {
	c.compacting = false
	switch {
	case c.Phase == v1beta1.ChatRequiresAction:
		c.cancelCalls()
		c.end(v1beta1.TurnInterrupted)
	case c.Attempt == nil: // The chat is held: there is nothing to hand over.
		c.end(v1beta1.TurnInterrupted)
	default:
		c.Phase = v1beta1.ChatInterrupting
	}
}

// Clear is the annotation parley.dev/clear: the model sees nothing of what was said so far.
func (c *Chat) Clear(token string) {
	if c.Requests[v1beta1.RequestClear].Token == token {
		return
	}
	if c.Archived || c.busy() || nextQueued(c) != "" || len(c.History) <= c.ContextStart {
		c.Requests[v1beta1.RequestClear] = Request{token, v1beta1.RequestRefused}
		return
	}
	c.Requests[v1beta1.RequestClear] = Request{token, v1beta1.RequestDone}
	c.beginContext(len(c.History))
	c.replies = unknown
	c.Phase, c.Error = v1beta1.ChatWaiting, "" // The error belonged to the old context.
}

// RefreshContext is the annotation parley.dev/refresh-context. The chat has a workspace, and so takes it in every
// state; nothing else that people see of the chat changes.
func (c *Chat) RefreshContext(token string) {
	c.Requests[v1beta1.RequestRefreshContext] = Request{token, v1beta1.RequestDone}
}

// Suspend sets spec.suspend: the attempt under way is finished and committed, no other begins.
func (c *Chat) Suspend() { c.Suspended = true }

// Resume takes spec.suspend back.
func (c *Chat) Resume() {
	c.Suspended = false
	for _, member := range c.family() {
		member.Proceed()
	}
}

// Proceed goes on with a turn that was held, if nothing holds it any more.
func (c *Chat) Proceed() {
	switch {
	case c.held() || c.Phase != v1beta1.ChatRunning:
	case c.Attempt == nil && c.failed > 0:
		c.again(c.failed, c.losses)
	case c.Attempt == nil:
		c.goOn()
	}
}
