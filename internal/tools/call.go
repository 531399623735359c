// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"

	"parley.dev/parley/api/v1alpha1"
)

// Call is what a tool is run with.
type Call struct {
	// ToolCall is the call as the model made it. Input is a valid JSON object, unless the call is refused.
	v1alpha1.ToolCall
	// Key of the call, which is the same when it is made again and that of no other call: protocol.ValidKey holds for it.
	Key string
	// Chat for which the tool runs, as it was when the step began.
	Chat *v1alpha1.Chat
	// Again is true if an earlier attempt, or an earlier process of this one, may have made the call.
	Again bool
	// Answer is that to the call's Question, if it has asked one.
	Answer *Answer
	// Show shows a piece of output while the tool runs. It is a preview: only the result counts.
	Show func(piece string)
	// Alive says that the tool is at work: see Silence. Show says so, too.
	Alive func()
	// Ask asks people, if the message with the results of the batch has room for the question. The call then ends with
	// ErrAsks.
	Ask func(Question) (taken bool)
	// Attach adds a file to the result, if there is room for it: there always is for a tool that AttachesFile.
	Attach func(file v1alpha1.MessageFile) (taken bool)
}

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
	// Comment is what they say in addition.
	Comment string
}

// ErrAsks ends a call that asks people. It has no result: once there is an answer it is made again, with that.
var ErrAsks = errors.New("the call asks people for input")

// ErrInterrupted ends the context of calls whose chat was interrupted, or deleted. A context that ends for another
// reason says nothing about the chat: its calls may be made again, by another process.
var ErrInterrupted = errors.New("the chat was interrupted")

// Interrupted reports whether the chat was interrupted, or deleted, for which there is work in ctx.
func Interrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrInterrupted) }

// Batch are the calls of one reply that Parley can answer now: see SplitByApproval.
type Batch struct {
	// Chat for which they run.
	Chat *v1alpha1.Chat
	// Reply is the version of the history that the reply with the calls was made for, which no other reply of the chat
	// has; 0 for a reply that was imported.
	Reply int64
	// Calls are to be run.
	Calls []v1alpha1.ToolCall
	// Denied are the results of calls that people denied.
	Denied []v1alpha1.ToolResult
	// Decisions are what people decided about both.
	Decisions []v1alpha1.ToolDecision
	// Answers are what people say to calls that have asked, by the ids of the calls.
	Answers map[string]Answer
	// Again is true if an earlier attempt may have made the calls.
	Again bool
	// Known are the results of those of the calls, by their ids, that are not to be run.
	Known map[string]v1alpha1.ToolResult
	// Expect is told of each call, which is to end soon after its context does; what it returns is called when the call is
	// over. nil: nothing is.
	Expect func(ctx context.Context) (over func())
}

// call is what the tool of the call is run with.
func (b *Batch) call(call v1alpha1.ToolCall) Call {
	c := Call{
		ToolCall: call, Key: b.key(call.ID), Chat: b.Chat, Again: b.Again,
		Show: func(string) {}, Ask: func(Question) bool { return false },
		Attach: func(v1alpha1.MessageFile) bool { return false },
	}
	if answer, ok := b.Answers[call.ID]; ok {
		c.Answer = &answer
	}
	return c
}
