// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import "errors"

// Question is what a call asks people before it goes on. It is kept with the chat, so that whoever makes the call again
// has it.
type Question struct {
	// Requests say to people what is asked.
	Requests string
	// State is for the tool alone.
	State string
}

// Answer is what people say to a Question.
type Answer struct {
	Question
	// Given is false if they give no answer.
	Given bool
	// Content of the answer, a JSON object or empty.
	Content string
}

// ErrAsks ends a call that asks people. It has no result: once there is an answer it is made again, with that.
var ErrAsks = errors.New("the call asks people for input")
