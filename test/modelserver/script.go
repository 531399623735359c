// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"time"
)

// Script says what the server answers. The zero Script answers every request with a text that echoes the last user
// text.
type Script struct {
	// RequireKey is the API key that callers must send, as "Authorization: Bearer" or "x-api-key". Empty: any, also none.
	RequireKey string `json:"requireKey,omitempty"`
	// Models are the models that exist; another one is answered with 404. Empty: every model exists.
	Models []string `json:"models,omitempty"`
	// Rules are tried in order; the first that matches and is not used up answers.
	Rules []Rule `json:"rules,omitempty"`
}

// Rule is one reply and when to give it.
type Rule struct {
	// Name appears in the records of the requests that the rule answered.
	Name string `json:"name,omitempty"`
	// Match is the condition; the zero Match holds for every request.
	Match Match `json:"match,omitzero"`
	// Times limits how often the rule answers. 0: no limit.
	Times int `json:"times,omitempty"`
	// Reply is what the rule answers.
	Reply Reply `json:"reply,omitzero"`
}

// Match is a condition on a request. Every field that is set must hold.
type Match struct {
	// Protocol is the wire protocol of the request.
	Protocol Protocol `json:"protocol,omitempty"`
	// Model is the exact name of the model.
	Model string `json:"model,omitempty"`
	// LastUserText is a substring of the last user text; letters match in either case.
	LastUserText string `json:"lastUserText,omitempty"`
	// ToolResults is the number of tool results since the last user message.
	ToolResults *int `json:"toolResults,omitempty"`
	// MinToolResults is the least number of tool results since the last user message.
	MinToolResults int `json:"minToolResults,omitempty"`
	// ToolOffered is the name of a tool that the request offers.
	ToolOffered string `json:"toolOffered,omitempty"`
	// Call is the number of the request within its conversation, counted from 1. Requests that were refused as invalid
	// do not count; requests that were answered with a fault do.
	Call int `json:"call,omitempty"`
	// Header is the name of a header that the request has.
	Header string `json:"header,omitempty"`
}

// Reply is what is sent back: the steps in order, or a fault, or some of the steps and then a fault.
type Reply struct {
	Steps []Step `json:"steps,omitempty"`
	// Usage is the reported token usage. nil: estimated at 4 bytes a token.
	Usage *Usage `json:"usage,omitempty"`
	// Finish is why the model stopped. Empty: ToolCalls if there are any, else Stop.
	Finish Finish `json:"finish,omitempty"`
	// FinishReason is sent in place of Finish, as it is, such as "pause_turn". Empty: the protocol's word for Finish.
	FinishReason string `json:"finishReason,omitempty"`
	// DelayBefore passes before the first part, and before a fault that comes in its place.
	DelayBefore Duration `json:"delayBefore,omitempty"`
	// DelayBetween passes between two parts.
	DelayBetween Duration `json:"delayBetween,omitempty"`
	// Fault makes the reply fail. nil: it succeeds.
	Fault *Fault `json:"fault,omitempty"`
}

// Finish is why a model stopped, in no provider's words.
type Finish string

// The reasons to stop. Each is sent in the word of the protocol: "stop" and "end_turn", "length" and "max_tokens", ...
const (
	FinishStop          Finish = "Stop"
	FinishLength        Finish = "Length"
	FinishToolCalls     Finish = "ToolCalls"
	FinishContentFilter Finish = "ContentFilter"
)

// Step is a block of the reply. Exactly one of the fields is set.
type Step struct {
	Text      *Text      `json:"text,omitempty"`
	Reasoning *Text      `json:"reasoning,omitempty"`
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	Search    *Search    `json:"search,omitempty"`
}

// Text is a text and the pieces in which it is streamed, each piece one part. In a script file a plain string stands
// for a Text with that Value. Value and Chunks are templates over Facts where they contain "{{".
type Text struct {
	// Value is the text.
	Value string `json:"value,omitempty"`
	// Chunks is the text as an explicit list of pieces, instead of Value.
	Chunks []string `json:"chunks,omitempty"`
	// Repeat makes a large text without a large script, instead of Value.
	Repeat *Repeat `json:"repeat,omitempty"`
	// PieceBytes cuts Value or Repeat into pieces of at most that many bytes, never inside a character.
	PieceBytes int `json:"pieceBytes,omitempty"`
	// PieceWords cuts Value or Repeat into pieces of that many words, each with the white space that follows it.
	PieceWords int `json:"pieceWords,omitempty"`
}

// Repeat is Text again and again, cut at Bytes bytes.
type Repeat struct {
	Text  string `json:"text"`
	Bytes int    `json:"bytes"`
}

// ToolCall is a call that the model asks for.
type ToolCall struct {
	Name string `json:"name"`
	// Arguments is the JSON of the arguments. A JSON string is sent as the text it holds, after it was executed as a
	// template, so that a script can send anything, also malformed arguments. Empty: {}.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// ID is the id of the call. Empty: a random one in the form of the protocol.
	ID string `json:"id,omitempty"`
	// PieceBytes cuts the arguments into pieces of at most that many bytes. 0: one piece.
	PieceBytes int `json:"pieceBytes,omitempty"`
}

// Usage is token usage, in one meaning for all protocols.
type Usage struct {
	// Input counts all tokens of the prompt, those from the cache included. (Anthropic reports them apart.)
	Input int `json:"input"`
	// Output counts all tokens of the reply, those of the reasoning included.
	Output int `json:"output"`
	// Cached is the part of Input that was read from the provider's cache.
	Cached int `json:"cached,omitempty"`
	// Reasoning is the part of Output that was reasoning. Anthropic does not report it.
	Reasoning int `json:"reasoning,omitempty"`
}

// Duration is a time.Duration that a script file writes as "30ms".
type Duration time.Duration

// FaultKind is a way to fail.
type FaultKind string

const (
	// FaultStatus answers with an HTTP error in the provider's own shape.
	FaultStatus FaultKind = "Status"
	// FaultContextTooLong answers as the provider does when the prompt is longer than the model's context.
	FaultContextTooLong FaultKind = "ContextTooLong"
	// FaultReset resets the connection before any header.
	FaultReset FaultKind = "Reset"
	// FaultCut breaks the connection after After parts, in the middle of the transfer encoding.
	FaultCut FaultKind = "Cut"
	// FaultEnd ends the stream after After parts, properly for HTTP but without the terminal event.
	FaultEnd FaultKind = "End"
	// FaultError sends an error event after After parts.
	FaultError FaultKind = "Error"
	// FaultFailed ends the stream after After parts with a reply that says it failed: response.failed of the responses
	// protocol. The other protocols have only the event of kind Error.
	FaultFailed FaultKind = "Failed"
	// FaultHang sends nothing more until the client goes away, before the header or after After parts.
	FaultHang FaultKind = "Hang"
)

// Fault is how a reply fails.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// After is the number of parts before the fault. nil: none for Cut, End, Error and Failed; before the header for Hang.
	After *int `json:"after,omitempty"`
	// Status is the HTTP status of kind Status. The error event of a stream has the type that goes with it (500 if 0).
	Status int `json:"status,omitempty"`
	// Problem is what the error is about, where its status does not tell; instead of Status.
	Problem Problem `json:"problem,omitempty"`
	// Type, Code and Message replace those that the provider uses for the status. Anthropic has no code.
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Body replaces the whole body, as the text/html page of a proxy would; of an event within a stream, its data.
	Body string `json:"body,omitempty"`
	// Headers are added to the HTTP error.
	Headers map[string]string `json:"headers,omitempty"`
	// RetryAfter is when to come back, in one of its forms.
	RetryAfter *RetryAfter `json:"retryAfter,omitempty"`
}

// RetryAfter is the header that says when to come back. Each field that is set adds its header.
type RetryAfter struct {
	// Seconds is sent as "Retry-After: 7".
	Seconds *int `json:"seconds,omitempty"`
	// Date is sent as "Retry-After:" with the HTTP date that lies this far ahead (HTTP dates count whole seconds).
	Date *Duration `json:"date,omitempty"`
	// Milliseconds is sent as "retry-after-ms: 250".
	Milliseconds *int `json:"milliseconds,omitempty"`
}

// Always is a script that answers every request with the reply.
func Always(reply Reply) Script { return Script{Rules: []Rule{{Reply: reply}}} }

// Say is a step that sends the text, each argument as one part.
func Say(chunks ...string) Step { return Step{Text: &Text{Chunks: chunks}} }

// Think is a step that sends the reasoning, each argument as one part.
func Think(chunks ...string) Step { return Step{Reasoning: &Text{Chunks: chunks}} }

// Call is a step that asks for one tool call. arguments is JSON.
func Call(name, arguments string) Step {
	return Step{ToolCalls: []ToolCall{{Name: name, Arguments: json.RawMessage(arguments)}}}
}
