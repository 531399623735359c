// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parts is the wire form of a streamed reply: what a generation pod sends to its relay, the relay to the
// gateway, and the gateway to clients. A part is small and never stored in the cluster;
// a finished step is a ChatMessage.
//
// The parts of one attempt are numbered from 1 without gaps, so that its fence and the number name a part for ever, and
// a client can resume after the last one that it has seen.
//
// The package depends on nothing but the standard library, because the relay links it.
package parts

import "time"

// Type says what a part carries.
type Type string

const (
	// Text is a piece of the reply's text, in text.
	Text Type = "Text"
	// Reasoning is a piece of the model's reasoning, in text.
	Reasoning Type = "Reasoning"
	// ToolInput is a piece of a tool call's arguments while the model writes them: id and name of the call, input piece in
	// text.
	ToolInput Type = "ToolInput"
	// ToolCall is a whole tool call: id, name, and the arguments in text. It does not come if the reply is cut off within
	// it.
	ToolCall Type = "ToolCall"
	// ToolStart says that a tool call has begun to run: id and name.
	ToolStart Type = "ToolStart"
	// ToolOutput is a piece of what a tool has to say while it runs,
	// in text: id and name of the call. The whole result follows.
	ToolOutput Type = "ToolOutput"
	// ToolResult is the result of a tool call: id, name, and the output in text. It comes as soon as the call has ended.
	ToolResult Type = "ToolResult"
	// Source is a source that the provider cites: id, url, title in name.
	Source Type = "Source"
)

// Part is one streamed piece of a step.
type Part struct {
	// Type says which of the other fields matter.
	Type Type `json:"type"`
	// ID of the block, the call or the source: pieces with the same type and id belong together.
	ID string `json:"id,omitempty"`
	// Name of the tool, or the title of the source.
	Name string `json:"name,omitempty"`
	// Text is the piece itself.
	Text string `json:"text,omitempty"`
	// URL of a source.
	URL string `json:"url,omitempty"`
	// IsError is true for the result of a tool that failed.
	IsError bool `json:"isError,omitempty"`
	// At is when the reasoning began (its first part), the call was complete, began to run or ended; zero for other parts.
	At time.Time `json:"at,omitzero"`
}

// Frame is a numbered part, as it travels.
type Frame struct {
	// Seq numbers the parts of an attempt from 1 without gaps.
	Seq int64 `json:"seq"`
	// Role that speaks: Assistant, or Tool for the results of tools.
	Role string `json:"role"`
	// Part is what is said.
	Part Part `json:"part"`
}
