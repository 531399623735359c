// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Result is what a client says about a call.
type Result struct {
	ID string
	// Malformed is true for an output that is not JSON, Failed for a result that is an error.
	Malformed, Failed bool
}

type approval struct {
	name    string
	applied bool
}

// Bring creates a Tool message with a client's results. They are taken when they answer exactly the calls that wait for
// a client, and when nobody is left to ask for approval.
func (c *Chat) Bring(name string, results ...Result) {
	m := &Message{Name: name, Role: v1beta1.RoleTool}
	c.people = append(c.people, m)
	if !c.fits(results) {
		m.reject(v1beta1.ReasonResultsInvalid)
		return
	}
	m.State = v1beta1.MessagePending
	m.Stops = c.Limits.StopsAfterClient && slices.ContainsFunc(results, func(r Result) bool { return !r.Failed })
	c.complete()
}

// fits reports whether the results answer each call that waits for a client once, and no other, in JSON.
func (c *Chat) fits(results []Result) bool {
	left := c.asked(v1beta1.RequiresClient)
	if c.Phase != v1beta1.ChatRequiresAction {
		return false
	}
	for _, result := range results {
		at := slices.Index(left, result.ID)
		if at < 0 || result.Malformed {
			return false
		}
		left = slices.Delete(left, at, at+1)
	}
	return len(left) == 0
}

// asked are the ids of the calls that still wait for what requires says.
func (c *Chat) asked(requires v1beta1.RequiredAction) (ids []string) {
	for _, call := range c.Asked {
		if call.RequiresAction == requires && call.Decision == "" {
			ids = append(ids, call.ID)
		}
	}
	return ids
}

// Decide creates a ToolApproval for a call. It counts if the call waits for approval and nobody was quicker.
func (c *Chat) Decide(name, id string, decision v1beta1.ApprovalDecision) {
	applied := slices.Contains(c.asked(v1beta1.RequiresApproval), id)
	c.approvals = append(c.approvals, approval{name, applied})
	if !applied {
		return
	}
	for i := range c.Asked {
		if c.Asked[i].ID == id {
			c.Asked[i].Decision = decision
		}
	}
	c.complete()
}

// complete goes on when every call has what it waits for. Results are committed first; Parley runs or answers the calls
// that were decided next.
func (c *Chat) complete() {
	if len(c.asked(v1beta1.RequiresApproval)) > 0 {
		return
	}
	if client := c.asked(v1beta1.RequiresClient); len(client) > 0 {
		m := c.pending()
		if m == nil {
			return
		}
		m.State, m.Answers = v1beta1.MessageCommitted, client
		c.History = append(c.History, m)
	}
	for _, call := range c.Asked {
		if call.Decision != "" {
			c.user().Turn.Decided = append(c.user().Turn.Decided, call.ID)
		}
	}
	c.goOn()
}

// pending is the oldest message with results that fit and have not been taken.
func (c *Chat) pending() *Message {
	at := slices.IndexFunc(c.people, (*Message).early)
	if at < 0 {
		return nil
	}
	return c.people[at]
}

// stopAsking withdraws what people were asked for. Results that waited for others to approve come to nothing.
func (c *Chat) stopAsking() {
	c.Asked = nil
	for _, m := range c.people {
		if m.early() {
			m.reject(v1beta1.ReasonResultsInvalid)
		}
	}
}

// early reports whether these are results that wait for people to decide about the other calls.
func (m *Message) early() bool {
	return m.Role == v1beta1.RoleTool && m.State == v1beta1.MessagePending
}
