// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/model/reference"
)

// knownDifference is a kind of operation of which it is known that the operator does something else than the model says.
type knownDifference struct {
	// difference says what the operator does instead.
	difference string
	is         func(c *reference.Chat, o operation) bool
	// remedy is what is done about it.
	remedy remedy
}

// remedy is how a known difference is kept out of a sequence.
type remedy int

const (
	// leaveOut leaves the operation out.
	leaveOut remedy = iota
	// settleBefore and settleAfter carry it out, and wait until every message says where it stands: then the operator is right.
	settleBefore
	settleAfter
)

// known is to become shorter: a line goes as soon as the operator is right. With -known all of them are carried out, too.
var known = []knownDifference{
	{
		difference: "A User message that began a turn less than a second ago, and does not say so yet, is taken up again instead " +
			"of being superseded when a message before it is edited or deleted.",
		is: func(c *reference.Chat, o operation) bool {
			at := slices.IndexFunc(c.History, func(m *reference.Message) bool { return m.Name == o.arg(0) })
			return (o.verb == "edit" || o.verb == "delete") && at >= 0 &&
				slices.ContainsFunc(c.History[at+1:], func(m *reference.Message) bool { return m.Role == v1alpha1.RoleUser })
		},
		remedy: settleBefore,
	},
	{
		difference: "A suspended chat whose attempt is reported as lost, or handed over though nobody asked for it, begins another one.",
		is: func(c *reference.Chat, o operation) bool {
			return c.Suspended && c.Phase == v1alpha1.ChatRunning && slices.Contains([]string{"lose", "partial", "nothing"}, o.verb)
		},
	},
	{
		difference: "The message whose calls wait for people says for ever that it is being answered when a queued message is " +
			"told to cut in.",
		is: func(c *reference.Chat, o operation) bool {
			m := c.Person(o.arg(0))
			return o.verb == "promote" && c.Phase == v1alpha1.ChatRequiresAction && m != nil && m.State == v1alpha1.MessageQueued
		},
	},
	{
		difference: "Results that do not fit are not rejected, but said to wait for approval, while others that fit wait for it.",
		is: func(c *reference.Chat, o operation) bool {
			return o.verb == "bring" && slices.ContainsFunc(c.People(), func(m *reference.Message) bool { return m.State == v1alpha1.MessagePending })
		},
	},
	{
		difference: "Results after which limits.maxSteps ends the turn lose their place in the history when a queued message begins.",
		is: func(c *reference.Chat, o operation) bool {
			return o.verb == "bring" && c.Phase == v1alpha1.ChatRequiresAction && len(c.Queue) > 0 && c.Steps() >= c.Limits.MaxSteps
		},
	},
	{
		difference: "A message that is deleted while calls wait for people takes the calls before it along: they are given up instead " +
			"of being run, or asked for, again.",
		is: func(c *reference.Chat, o operation) bool {
			at := slices.IndexFunc(c.History, func(m *reference.Message) bool { return m.Name == o.arg(0) })
			return o.verb == "delete" && c.Phase == v1alpha1.ChatRequiresAction && at > 0 && len(reference.Unanswered(c.History[:at])) > 0
		},
	},
	{
		difference: "A message whose reply was deleted, and which is answered again, keeps saying what became of the earlier turn if the new " +
			"one ends within a second while another message is queued.",
		is: func(c *reference.Chat, o operation) bool {
			return o.verb == "delete" && c.Committed(o.arg(0)) != nil
		},
		remedy: settleAfter,
	},
	{
		difference: "A turn that was interrupted just when its reply was done is called Answered by the chat, and Interrupted by its " +
			"message, when the next message is deleted.",
		is: func(c *reference.Chat, o operation) bool {
			at := slices.IndexFunc(c.History, func(m *reference.Message) bool { return m.Name == o.arg(0) })
			if o.verb != "delete" || at < 1 {
				return false
			}
			last, user := c.History[at-1], userOf(c.History[:at])
			return !last.Partial && last.Role == v1alpha1.RoleAssistant && user.Turn.Result == v1alpha1.TurnInterrupted
		},
	},
}

// userOf is the newest User message.
func userOf(history []*reference.Message) *reference.Message {
	for _, m := range slices.Backward(history) {
		if m.Role == v1alpha1.RoleUser {
			return m
		}
	}
	return nil
}

// isKnown tells whether there is a known difference with that remedy.
func isKnown(c *reference.Chat, o operation, r remedy) bool {
	return !*knownFlag && slices.ContainsFunc(known, func(k knownDifference) bool { return k.remedy == r && k.is(c, o) })
}
