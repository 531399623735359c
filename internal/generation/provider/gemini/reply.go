// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"charm.land/fantasy"
	"google.golang.org/genai"

	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/wire"
)

// reply reads a reply.
type reply struct {
	parts *wire.Parts
	last  finish.Last
	usage fantasy.Usage
	// block is the id of the text or the thought that is open, empty if none is; blocks is how many have started.
	block   string
	blocks  int
	thought bool
	// ownCall is the id of the newest call of a tool of Google's.
	ownCall string
}

// Events implements wire.Reply: the document is the only event, or a list of them.
func (*reply) Events(document []byte) [][]byte {
	var list []json.RawMessage
	if json.Unmarshal(document, &list) != nil {
		return [][]byte{document}
	}
	events := make([][]byte, 0, len(list))
	for _, event := range list {
		events = append(events, event)
	}
	return events
}

// Event implements wire.Reply. Each event has the counts so far.
func (r *reply) Event(data []byte) (ended bool, err error) {
	var event struct {
		Candidates     []*candidate    `json:"candidates"`
		PromptFeedback json.RawMessage `json:"promptFeedback"`
		UsageMetadata  json.RawMessage `json:"usageMetadata"`
		ResponseID     string          `json:"responseId"`
		Error          json.RawMessage `json:"error"`
	}
	err = decode(data, &event)
	switch {
	case data[0] != '{':
		return false, nil
	case wire.IsError(event.Error):
		return false, wire.EventError(data)
	case err != nil: // A part that cannot be read could be a call.
		return false, fmt.Errorf("reading an event of Gemini: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	r.last.ResponseID = cmp.Or(event.ResponseID, r.last.ResponseID)
	if event.UsageMetadata != nil {
		var usage genai.GenerateContentResponseUsageMetadata
		_ = json.Unmarshal(event.UsageMetadata, &usage) // What does not fit is not counted.
		r.usage = usageOf(&usage)
	}
	var feedback struct {
		BlockReason string `json:"blockReason"`
	}
	if json.Unmarshal(event.PromptFeedback, &feedback) == nil && feedback.BlockReason != "" {
		r.last.Reason, r.last.Blocked = feedback.BlockReason, true
	}
	if len(event.Candidates) > 0 && event.Candidates[0] != nil {
		r.candidate(event.Candidates[0])
	}
	return false, nil
}

// candidate has what counts of a genai.Candidate, so that nothing else of one ends a reply.
type candidate struct {
	Content           *genai.Content  `json:"content"`
	FinishReason      string          `json:"finishReason"`
	GroundingMetadata json.RawMessage `json:"groundingMetadata"`
}

func (r *reply) candidate(c *candidate) {
	if !r.last.Blocked {
		r.last.Reason = cmp.Or(c.FinishReason, r.last.Reason)
	}
	if c.Content != nil {
		for _, part := range c.Content.Parts {
			if part != nil {
				r.part(part)
			}
		}
	}
	var grounding genai.GroundingMetadata
	_ = json.Unmarshal(c.GroundingMetadata, &grounding) // What does not fit is not cited.
	for _, chunk := range grounding.GroundingChunks {
		if chunk != nil && chunk.Web != nil && chunk.Web.URI != "" {
			r.parts.Source(chunk.Web.URI, chunk.Web.Title)
		}
	}
}

// part reads a part. One of an unknown kind is ignored. Parts of tools of Google's go back as they came.
func (r *reply) part(part *genai.Part) {
	switch {
	case part.FunctionCall != nil:
		call := wire.Call{ID: part.FunctionCall.ID, Name: toolName(part.FunctionCall.Name)}
		if part.ThoughtSignature != nil {
			call.State = &wire.State{Signature: base64.StdEncoding.EncodeToString(part.ThoughtSignature)}
		}
		r.call(call, part.FunctionCall.Args)
	case part.ExecutableCode != nil:
		r.ownCall = r.call(wire.Call{ID: part.ExecutableCode.ID, Name: wire.CodeExecution, OfProvider: true,
			State: whole(part)}, map[string]any{"code": part.ExecutableCode.Code})
	case part.CodeExecutionResult != nil:
		result := part.CodeExecutionResult
		r.parts.Result(cmp.Or(result.ID, r.ownCall), wire.CodeExecution, cmp.Or(result.Output, string(result.Outcome)),
			whole(part))
	case part.ToolCall != nil:
		r.ownCall = r.call(wire.Call{ID: part.ToolCall.ID, Name: nameOf(part.ToolCall.ToolType), OfProvider: true,
			State: whole(part)}, part.ToolCall.Args)
	case part.ToolResponse != nil: // It has no text for people.
		r.parts.Result(cmp.Or(part.ToolResponse.ID, r.ownCall), nameOf(part.ToolResponse.ToolType), "", whole(part))
	default:
		r.addText(part)
	}
}

// addText adds to a text, or to a thought. The signature of one can follow in a part without text.
func (r *reply) addText(part *genai.Part) {
	if part.Text != "" && (r.block == "" || r.thought != part.Thought) {
		r.end()
		r.block, r.thought = strconv.Itoa(r.blocks), part.Thought
		r.blocks++
	}
	if r.block == "" {
		return
	}
	add, sign := r.parts.Text, r.parts.TextState
	if r.thought {
		add, sign = r.parts.Reasoning, r.parts.ReasoningState
	}
	add(r.block, part.Text)
	if part.ThoughtSignature != nil {
		sign(r.block, wire.State{Signature: base64.StdEncoding.EncodeToString(part.ThoughtSignature)})
	}
}

// end ends the text or the thought that is open.
func (r *reply) end() {
	r.parts.EndAll()
	r.block = ""
}

// call adds a call and returns its id, which not every call comes with.
func (r *reply) call(c wire.Call, args map[string]any) string {
	r.end()
	if args == nil {
		args = map[string]any{}
	}
	input, _ := json.Marshal(args) // It came as JSON.
	c.ID, c.Input = cmp.Or(c.ID, rand.Text()), string(input)
	r.parts.BeginCall(c)
	r.parts.CallInput(c.ID, c.Input)
	r.parts.Call(c)
	return c.ID
}

// whole is the state with which a part goes back whole.
func whole(part *genai.Part) *wire.State {
	item, _ := json.Marshal(part) // It came as JSON.
	return &wire.State{Item: item}
}

// nameOf is the name of a tool of Google's.
func nameOf(tool genai.ToolType) string {
	if tool == genai.ToolTypeGoogleSearchWeb {
		return wire.WebSearch
	}
	return strings.ToLower(string(tool))
}

// usageOf are the counts. Google's prompt includes what came from the cache, and what its own tools brought to read is
// part of neither it nor the candidates. It counts the thoughts in addition to the candidates; some models were seen to
// count them among these, which their total shows.
func usageOf(u *genai.GenerateContentResponseUsageMetadata) fantasy.Usage {
	input, output := int64(u.PromptTokenCount)+int64(u.ToolUsePromptTokenCount), int64(u.CandidatesTokenCount)
	if input+output != int64(u.TotalTokenCount) {
		output += int64(u.ThoughtsTokenCount)
	}
	return fantasy.Usage{InputTokens: input, OutputTokens: output, CacheReadTokens: int64(u.CachedContentTokenCount),
		ReasoningTokens: int64(u.ThoughtsTokenCount), TotalTokens: int64(u.TotalTokenCount)}
}

func (r *reply) End() (wire.End, error) {
	if r.last.Reason == "" {
		return wire.End{}, wire.IncompleteError()
	}
	return wire.End{Last: r.last, Usage: r.usage}, nil
}
