// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/google"
)

// geminiEar mends a stream of Gemini. Each chunk carries the counts so far, which fantasy adds up: the right ones are those of the last
// chunk. A stream that ends behind a call counts as whole for fantasy, also without the finishReason that ends each. The signature of
// a text is lost if the text is empty, as in the last chunk, and else stands behind the text, where a call could take it for its own.
type geminiEar struct {
	usage    *geminiUsage
	finished bool
	// signatures are those of the texts, by their place among the texts; of an unsigned one it is empty.
	signatures []string
	inText     bool
	// texts is how many texts fantasy has begun; held is a reasoning that it has begun and not yet filled.
	texts int
	held  *fantasy.StreamPart
}

// geminiUsage is what the protocol tells. The prompt includes what came from the cache; the candidates do not include the
// thoughts, and what Gemini's own tools brought to read is part of neither.
type geminiUsage struct {
	Prompt     int64 `json:"promptTokenCount"`
	ToolPrompt int64 `json:"toolUsePromptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
	Total      int64 `json:"totalTokenCount"`
}

type geminiChunk struct {
	Candidates []struct {
		FinishReason string `json:"finishReason"`
		Content      struct {
			Parts []geminiPart `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	Usage *geminiUsage `json:"usageMetadata"`
}

type geminiPart struct {
	Text      *string         `json:"text"`
	Thought   bool            `json:"thought"`
	Signature string          `json:"thoughtSignature"`
	Call      json.RawMessage `json:"functionCall"`
}

// line implements ear. Gemini sends few chunks, and counts in each.
func (e *geminiEar) line(line []byte) []byte {
	data, ok := eventData(line)
	var chunk geminiChunk
	if !ok || !bytes.HasPrefix(data, []byte("{")) || json.Unmarshal(data, &chunk) != nil {
		return line
	}
	if chunk.Usage != nil {
		e.usage = chunk.Usage
	}
	if len(chunk.Candidates) > 0 {
		e.finished = e.finished || chunk.Candidates[0].FinishReason != ""
		for _, part := range chunk.Candidates[0].Content.Parts {
			e.read(part)
		}
	}
	return line
}

// says reports whether the part has a text, be it a thought.
func (p geminiPart) says() bool { return p.Text != nil && *p.Text != "" }

// read counts the texts as fantasy does.
func (e *geminiEar) read(part geminiPart) {
	said := part.says()
	switch {
	case part.Call != nil || part.Thought && said:
		e.inText = false
	case part.Text != nil && !part.Thought:
		if said && !e.inText {
			e.inText, e.signatures = true, append(e.signatures, "")
		}
		if n := len(e.signatures); n > 0 && part.Signature != "" {
			e.signatures[n-1] = part.Signature
		}
	}
}

// part implements ear.
func (e *geminiEar) part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	held := e.held
	e.held = nil
	if e.signsText(part) {
		if held != nil {
			return true // There is nothing to this reasoning but the signature of the text.
		}
		part.ProviderMetadata = nil
	}
	if held != nil && !yield(*held) {
		return false
	}
	switch part.Type {
	case fantasy.StreamPartTypeReasoningStart:
		e.held = &part
		return true
	case fantasy.StreamPartTypeTextStart:
		e.texts++
	case fantasy.StreamPartTypeTextEnd:
		if signature := e.signature(); signature != "" {
			part.ProviderMetadata = fantasy.ProviderMetadata{google.Name: &google.ReasoningMetadata{Signature: signature}}
		}
	case fantasy.StreamPartTypeFinish:
		part = e.finish(part)
	}
	return yield(part)
}

// finish is the end of the stream with the right counts, or an error if the stream did not say that it ends.
func (e *geminiEar) finish(part fantasy.StreamPart) fantasy.StreamPart {
	if !e.finished {
		return fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: fantasy.NewIncompleteStreamError()}
	}
	part.Usage = e.counts(part.Usage)
	return part
}

// signature is that of the text that fantasy is at; empty if it has none.
func (e *geminiEar) signature() string {
	if e.texts == 0 || e.texts > len(e.signatures) {
		return ""
	}
	return e.signatures[e.texts-1]
}

// signsText reports whether a reasoning ends with the signature of the text that fantasy is at, which keeps it itself.
func (e *geminiEar) signsText(end fantasy.StreamPart) bool {
	signed, ok := end.ProviderMetadata[google.Name].(*google.ReasoningMetadata)
	return ok && end.Type == fantasy.StreamPartTypeReasoningEnd && signed.Signature != "" && signed.Signature == e.signature()
}

// counts are the newest counts, or else those that are known otherwise.
func (e *geminiEar) counts(otherwise fantasy.Usage) fantasy.Usage {
	if e.usage == nil {
		return otherwise
	}
	return fantasy.Usage{
		InputTokens: e.usage.Prompt + e.usage.ToolPrompt, CacheReadTokens: e.usage.Cached, OutputTokens: e.usage.Candidates,
		ReasoningTokens: e.usage.Thoughts, TotalTokens: e.usage.Total,
	}
}
