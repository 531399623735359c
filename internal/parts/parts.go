// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parts is the wire form of a streamed reply: what a generation pod sends to its relay, the relay to the gateway,
// and the gateway to clients. A part is small and never stored in the cluster; a finished step is a ChatMessage.
//
// The parts of one attempt form an episode. Within an episode they are numbered from 1 without gaps, so that
// (episode, seq) names a part for ever and a client can resume after the last one that it has seen.
//
// The package depends on nothing but the standard library, because the relay links it.
package parts

import (
	"fmt"
)

// Type says what a part carries.
type Type string

const (
	// Text is a piece of the reply's text, in text.
	Text Type = "Text"
	// Reasoning is a piece of the model's reasoning, in text.
	Reasoning Type = "Reasoning"
	// ToolInput is a piece of a tool call's arguments while the model writes them: id and name of the call, input piece in text.
	ToolInput Type = "ToolInput"
	// ToolCall is a whole tool call: id, name, and the arguments in text.
	ToolCall Type = "ToolCall"
	// ToolResult is the result of a tool call: id, name, and the output in text.
	ToolResult Type = "ToolResult"
	// Source is a source that the provider cites: id, url, title in name.
	Source Type = "Source"
)

// Part is one streamed piece of a step.
type Part struct {
	// Type says which of the other fields matter.
	Type Type `json:"type"`
	// ID of the block (Text, Reasoning), of the call (ToolInput, ToolCall, ToolResult), or of the source.
	ID string `json:"id,omitempty"`
	// Name of the tool, or the title of the source.
	Name string `json:"name,omitempty"`
	// Text is the piece itself.
	Text string `json:"text,omitempty"`
	// URL of a source.
	URL string `json:"url,omitempty"`
	// IsError is true for the result of a tool that failed.
	IsError bool `json:"isError,omitempty"`
}

// Frame is a numbered part, as it travels.
type Frame struct {
	// Seq numbers the parts of an episode from 1 without gaps.
	Seq int64 `json:"seq"`
	// Role that speaks: Assistant, or Tool for the results of tools.
	Role string `json:"role"`
	// Part is what is said.
	Part Part `json:"part"`
}

// Episode names one attempt: it is the fence of design terms, (chat UID, history version, attempt).
type Episode struct {
	// ChatUID is metadata.uid of the Chat.
	ChatUID string
	// HistoryVersion that the attempt builds on.
	HistoryVersion int64
	// Attempt number, from 1.
	Attempt int32
}

// String is "<chat UID>/<history version>/<attempt>", which is also the episode's path in the relay's URLs.
func (e Episode) String() string {
	return fmt.Sprintf("%s/%d/%d", e.ChatUID, e.HistoryVersion, e.Attempt)
}
