// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"

	"parley.dev/parley/api/v1beta1"
)

// Call is what a tool is run with.
type Call struct {
	// ToolCall is the call as the model made it. Input is a valid JSON object, unless the call is refused.
	v1beta1.ToolCall
	// Key is unique to the call, and the same when the call is made again. protocol.ValidKey holds for it.
	Key string
	// Chat for which the tool runs, as it was when the step began.
	Chat *v1beta1.Chat
	// Again is true if an earlier attempt, or an earlier process of this one, may have made the call.
	Again bool
	// Answer to the call's Question; nil: it has asked none.
	Answer *Answer
	// Show shows a piece of output while the tool runs. It is a preview: only the result counts.
	Show func(piece string)
	// Alive reports progress: see Silence. Show does so, too.
	Alive func()
	// Ask asks people, if the message with the results of the batch has room for the question. The call then ends with
	// ErrAsks.
	Ask func(Question) (taken bool)
	// Attach adds a file to the result, if there is room for it: there always is for a tool that AttachesFile.
	Attach func(file v1beta1.MessageFile) (taken bool)
}

// Question is what a call asks people before it continues. The chat keeps it, for the attempt that repeats the call.
type Question struct {
	// Requests for input by their ids, as the Model Context Protocol has them: JSON; empty if there is a proposal.
	Requests string
	// Proposal tells people what the call does once they approve.
	Proposal string
	// State is for the tool alone.
	State string
}

// Answer is the answer of people to a Question.
type Answer struct {
	Question
	// Given is false if they give no answer, or do not approve.
	Given bool
	// Content of the answer, a JSON object or empty.
	Content string
	// Comment is what they add.
	Comment string
}

// ErrAsks ends a call that asks people. It has no result: once there is an answer it is made again, with that.
var ErrAsks = errors.New("the call asks people for input")

// ErrInterrupted ends the context of calls whose chat was interrupted, or deleted. After any other end, another process
// may make the calls again.
var ErrInterrupted = errors.New("the chat was interrupted")

// Interrupted reports whether the chat for which ctx does work was interrupted, or deleted.
func Interrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrInterrupted) }

// Batch are the calls of one reply that Parley can answer now: see SplitByApproval.
type Batch struct {
	// Chat for which they run.
	Chat *v1beta1.Chat
	// Reply is the version of the history that the reply was made for, unique in the chat; 0: it was imported.
	Reply int64
	// Calls to run.
	Calls []v1beta1.ToolCall
	// Denied are the results of calls that people denied.
	Denied []v1beta1.ToolResult
	// Decisions of people about both.
	Decisions []v1beta1.ToolDecision
	// Answers to the questions of calls, by the ids of the calls.
	Answers map[string]Answer
	// Again is true if an earlier attempt may have made the calls.
	Again bool
	// Known are results by the ids of their calls, which are not run.
	Known map[string]v1beta1.ToolResult
	// Expect is called with the context of each call, which should end soon after it. over is called at the end of the
	// call. It may be nil.
	Expect func(ctx context.Context) (over func())
}

// call is what the tool of the call is run with.
func (b *Batch) call(call v1beta1.ToolCall) Call {
	c := Call{
		ToolCall: call, Key: b.key(call.ID), Chat: b.Chat, Again: b.Again,
		Show: func(string) {}, Ask: func(Question) bool { return false },
		Attach: func(v1beta1.MessageFile) bool { return false },
	}
	if answer, ok := b.Answers[call.ID]; ok {
		c.Answer = &answer
	}
	return c
}

var (
	// plainID are ids of calls that can stand in a key as they are. They have no dot, so that none looks like a hash.
	plainID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	// plainUID are UIDs as API servers make them.
	plainUID = regexp.MustCompile(`^[0-9a-f-]{36}$`)
)

// key is Call.Key: <chat UID>.<version of the reply>.<id of the call>. Models choose ids, and imported messages have
// any: the key has the hash of an unusual one, after a second dot.
func (b *Batch) key(id string) string {
	chat := string(b.Chat.UID)
	if !plainUID.MatchString(chat) {
		chat = hash(chat)
	}
	if !plainID.MatchString(id) {
		id = "." + hash(id)
	}
	return fmt.Sprintf("%s.%d.%s", chat, max(0, b.Reply), id)
}

func hash(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
