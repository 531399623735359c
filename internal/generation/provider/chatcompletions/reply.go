// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/wire"
)

// endOfEvents is how a server says that it has sent everything.
var endOfEvents = []byte("[DONE]")

// thoughtID is the id of each reasoning of a reply.
const thoughtID = "0"

// reply reads one reply.
type reply struct {
	*protocol

	parts *wire.Parts
	// done is whether the server has sent [DONE].
	done bool
	end  wire.End
	// details are those of the reasoning that the model is writing.
	details []detail
	// short is whether it came in the field "reasoning" alone.
	short bool
	calls calls
	// texts is how many texts have ended, and writing whether the model has begun another one.
	texts   int
	writing bool
}

func (p *protocol) Reply(parts *wire.Parts) wire.Reply {
	return &reply{protocol: p, parts: parts,
		calls: calls{parts: parts, at: map[int64]*call{}, byID: map[string]*call{}}}
}

// Events implements wire.Reply. A completion reads as a chunk with all that there is.
func (r *reply) Events(document []byte) [][]byte {
	var completion openai.ChatCompletionChunk
	if json.Unmarshal(document, &completion) != nil || len(completion.Choices) == 0 {
		return [][]byte{document}
	}
	return [][]byte{document, endOfEvents}
}

func (r *reply) Event(data []byte) (ended bool, err error) {
	if bytes.Equal(data, endOfEvents) {
		r.done = true
		return true, nil
	}
	var chunk openai.ChatCompletionChunk
	_ = json.Unmarshal(data, &chunk) // What is no chunk says nothing.
	if chunk.Object == "error" || wire.IsError(json.RawMessage(chunk.JSON.ExtraFields["error"].Raw())) {
		return false, wire.EventError(data)
	}
	r.end.ResponseID = cmp.Or(r.end.ResponseID, chunk.ID)
	r.usage(&chunk.Usage)
	if len(chunk.Choices) > 0 {
		choice := &chunk.Choices[0]
		r.delta(deltaOf(choice))
		r.end.Reason = cmp.Or(choice.FinishReason, r.end.Reason)
	}
	return false, nil
}

// usage takes the newest counts. OpenAI counts the cache as input, and the reasoning as output. Some servers count the
// reasoning in addition to the output, as xAI does: it is more than the output, or the total shows it, or nothing does,
// as where Vercel forwards the counts of Gemini unchanged.
func (r *reply) usage(counts *openai.CompletionUsage) {
	if counts.PromptTokens == 0 && counts.CompletionTokens == 0 && counts.TotalTokens == 0 {
		return // It is a chunk without counts.
	}
	of, reasoning := &counts.PromptTokensDetails, counts.CompletionTokensDetails.ReasoningTokens
	r.end.Usage = fantasy.Usage{
		InputTokens:     max(counts.PromptTokens-of.CachedTokens-of.CacheWriteTokens, 0),
		CacheReadTokens: of.CachedTokens, CacheCreationTokens: of.CacheWriteTokens,
		OutputTokens: counts.CompletionTokens, ReasoningTokens: reasoning, TotalTokens: counts.TotalTokens,
	}
	if reasoning > counts.CompletionTokens ||
		counts.TotalTokens == counts.PromptTokens+counts.CompletionTokens+reasoning ||
		r.spec.Provider == v1beta1.ProviderVercel && strings.HasPrefix(r.spec.Model, "google/") {
		r.end.Usage.OutputTokens += reasoning
	}
}

// deltaOf is what a choice adds: some servers send a whole message instead.
func deltaOf(choice *openai.ChatCompletionChunkChoice) *openai.ChatCompletionChunkChoiceDelta {
	delta := &choice.Delta
	if message := choice.JSON.ExtraFields["message"].Raw(); !choice.JSON.Delta.Valid() && message != "" {
		_ = json.Unmarshal([]byte(message), delta) // What is no message says nothing.
		for i := range delta.ToolCalls {
			delta.ToolCalls[i].Index = int64(i)
		}
	}
	return delta
}

// additions are fields of a delta that OpenAI's does not have.
type additions struct {
	ReasoningContent string   `json:"reasoning_content"`
	Reasoning        string   `json:"reasoning"`
	Details          []detail `json:"reasoning_details"`
	Annotations      []struct {
		Cited struct {
			URL   string `json:"url"`
			Title string `json:"title"`
		} `json:"url_citation"`
	} `json:"annotations"`
}

func (r *reply) delta(delta *openai.ChatCompletionChunkChoiceDelta) {
	var more additions
	if len(delta.JSON.ExtraFields) > 0 {
		_ = json.Unmarshal([]byte(delta.RawJSON()), &more) // What it can read counts.
	}
	r.think(&more)
	text := contentOf(delta) + delta.Refusal
	r.end.Refused = r.end.Refused || delta.Refusal != ""
	if (text != "" || len(delta.ToolCalls) > 0) && !r.unsigned() {
		r.endThought()
	}
	r.parts.Text(r.textID(), text)
	r.writing = r.writing || text != ""
	r.calls.add(delta.ToolCalls)
	for _, note := range more.Annotations {
		if note.Cited.URL != "" {
			r.parts.Source(note.Cited.URL, note.Cited.Title)
		}
	}
}

// textID is the id of the text that the model writes.
func (r *reply) textID() string { return strconv.Itoa(r.texts) }

// contentOf is the text of a delta, which some servers send as a list of parts.
func contentOf(delta *openai.ChatCompletionChunkChoiceDelta) string {
	if delta.JSON.Content.Valid() {
		return delta.Content
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal([]byte(delta.JSON.Content.Raw()), &parts) // What is no list says nothing.
	var text strings.Builder
	for _, part := range parts {
		text.WriteString(part.Text)
	}
	return text.String()
}

// End implements wire.Reply. A reply is whole with a finish_reason, or where the server says that it has sent
// everything.
func (r *reply) End() (wire.End, error) {
	if !r.done && r.end.Reason == "" {
		return wire.End{}, wire.IncompleteError()
	}
	r.endThought()
	r.parts.EndAll() // A part behind a call would mark it as complete.
	r.calls.end()
	return r.end, nil
}
