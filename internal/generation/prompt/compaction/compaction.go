// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compaction selects the messages that the model sees, and those to summarise. It is pure.
//
// Invariant: an unanswered message is never summarised.
package compaction

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// prefix precedes a summary in the prompt.
const prefix = "The conversation before this point was replaced by the following summary of it. " +
	"Go on from there; do not mention the summary.\n\n"

// View is the part of a context that the model sees: its last summary as a User message, then the other messages in
// their order.
func View(visible []v1beta1.ChatMessage) []v1beta1.ChatMessage {
	if _, compacted := Replies(visible); !compacted {
		return visible
	}
	view := make([]v1beta1.ChatMessage, 1, len(visible)) // The first is for the summary.
	for i := range visible {
		if m := &visible[i]; m.Spec.Role == v1beta1.RoleSystem {
			view[0] = v1beta1.ChatMessage{ObjectMeta: m.ObjectMeta, Spec: v1beta1.ChatMessageSpec{
				ChatRef: m.Spec.ChatRef, Role: v1beta1.RoleUser, Content: prefix + m.Spec.Text()}}
		} else {
			view = append(view, *m)
		}
	}
	return view
}

// Replies is the number of Assistant messages in the context, and whether a summary begins it.
func Replies(visible []v1beta1.ChatMessage) (replies int64, compacted bool) {
	for i := range visible {
		switch visible[i].Spec.Role {
		case v1beta1.RoleAssistant:
			replies++
		case v1beta1.RoleSystem: // Only unanswered messages precede it.
			replies, compacted = 0, true
		}
	}
	return replies, compacted
}

// Unanswered is the number of unanswered messages at the end of a history.
func Unanswered(messages []v1beta1.ChatMessage) (n int) {
	for i := range slices.Backward(messages) {
		if messages[i].Spec.LastRole() != v1beta1.RoleUser {
			break
		}
		n++
	}
	return n
}

const (
	// bytesPerToken is a low estimate: most languages have 3 to 4.
	bytesPerToken = 3
	// inputPercent of the model's context is for the messages. The rest is for the system prompt and the summary.
	inputPercent = 75
	// headPercent of the input is for the beginning, which has the task.
	headPercent = 25
	// fileBytes is the most that a file counts: the model reads no more of a text.
	fileBytes = 128 << 10
)

// request asks for the summary.
const request = "Write a summary of this conversation that will replace it: whoever goes on will see nothing but " +
	"your summary. " +
	"Be dense and factual. Keep: the goals and what was asked for, in the words that matter; decisions and their " +
	"reasons; technical detail such as " +
	"names, paths, commands, identifiers, numbers and results; errors and how they were solved; what is done, what is " +
	"under way, and what is " +
	"still open; preferences and instructions that still hold. Leave out pleasantries. " +
	"Write only the summary and call no tools."

// Budget is how many bytes of messages fit into the call that summarises them; 0: no limit. limit is the model's in
// tokens, or 0 if unknown: then only a context that a model has refused as too long is cut, to half its size.
func Budget(limit int64, source v1beta1.CompactionSource, messages []v1beta1.ChatMessage) int {
	switch {
	case limit > 0:
		return int(limit * bytesPerToken * inputPercent / 100)
	case source == v1beta1.CompactionContextTooLong:
		return Less(0, messages)
	}
	return 0
}

// Less is half of the budget that the model refused as too long: in some languages tokens are shorter than estimated.
func Less(budget int, messages []v1beta1.ChatMessage) int {
	total := sizeOf(messages)
	if budget > 0 && budget < total {
		total = budget
	}
	return total / 2
}

func sizeOf(messages []v1beta1.ChatMessage) (total int) {
	for i := range messages {
		total += size(&messages[i])
	}
	return total
}

// Input is the conversation to summarise, followed by the request. If it exceeds the budget, long messages are
// shortened, and then its middle is omitted. Its messages have no earlier conversation: see prompt.Flatten.
func Input(messages []v1beta1.ChatMessage, budget int) []v1beta1.ChatMessage {
	return append(bound(messages, budget), user("parley-compaction-request", request))
}

func bound(messages []v1beta1.ChatMessage, budget int) []v1beta1.ChatMessage {
	if budget > 0 && sizeOf(messages) > budget {
		messages = shortenAll(messages, budget)
	}
	head, tail := cut(messages, budget)
	if head == tail {
		return slices.Clip(messages)
	}
	bounded := slices.Clone(messages[:head])
	bounded = append(bounded,
		user("parley-compaction-gap", fmt.Sprintf("[%d messages are left out here, because they do not fit.]", tail-head)))
	return append(bounded, messages[tail:]...)
}

// cut is the range of messages to omit.
func cut(messages []v1beta1.ChatMessage, budget int) (head, tail int) {
	if budget <= 0 || sizeOf(messages) <= budget {
		return 0, 0
	}
	left := budget * headPercent / 100
	for head < len(messages) && size(&messages[head]) <= left {
		left -= size(&messages[head])
		head++
	}
	left += budget - budget*headPercent/100
	for tail = len(messages); tail > head && size(&messages[tail-1]) <= left; tail-- {
		left -= size(&messages[tail-1])
	}
	return head, tail
}

// size is the number of bytes that a message adds to a prompt.
func size(m *v1beta1.ChatMessage) int {
	n := len(m.Spec.Content)
	for i := range m.Spec.Parts {
		n += partSize(&m.Spec.Parts[i])
	}
	return n
}

func partSize(p *v1beta1.MessagePart) int {
	switch {
	case p.Text != nil:
		return len(*p.Text)
	case p.ToolCall != nil:
		return len(p.ToolCall.Name) + len(p.ToolCall.Input)
	case p.ToolResult != nil:
		return len(p.ToolResult.Output)
	case p.File != nil:
		return min(len(p.File.Data), fileBytes)
	}
	return 0
}

func user(name, text string) v1beta1.ChatMessage {
	m := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Content: text}}
	m.Name = name
	return m
}
