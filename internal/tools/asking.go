// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import "errors"

// Question is what a call asks people before it goes on. It is kept with the chat, so that whoever makes the call again
// has it.
type Question struct {
	// Requests for input by their ids, as the Model Context Protocol has them: JSON; empty if there is a proposal.
	Requests string
	// Proposal says to people what the call will do if they approve of it.
	Proposal string
	// State is for the tool alone.
	State string
}

// Answer is what people say to a Question.
type Answer struct {
	Question
	// Given is false if they give no answer, or do not approve.
	Given bool
	// Content of the answer, a JSON object or empty.
	Content string
	// Comment is what they say besides.
	Comment string
}

// ErrAsks ends a call that asks people. It has no result: once there is an answer it is made again, with that.
var ErrAsks = errors.New("the call asks people for input")

// Reviewing is a Tool whose calls ask people themselves where that is required, with what they would do. So they wait
// for nobody before that.
type Reviewing interface {
	Tool
	// Reviewing marks the tool.
	Reviewing()
}

// Reviews reports whether calls of the tool ask people themselves.
func (r *Registry) Reviews(name string) bool {
	_, ok := r.tools[name].(Reviewing)
	return ok
}
