// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gemini repairs what fantasy loses of Gemini's protocol: counts, the end of a stream, signatures of thoughts,
// and most of a tool's schema. What is kept of a reply survives JSON and goes back as it came.
package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/google"

	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/intercept"
)

// interceptor repairs a stream. Each chunk carries the counts so far, which fantasy adds up: the right ones are those
// of the last chunk. A stream that ends behind a call counts as whole for fantasy, also without the finishReason that
// ends each. The signature of a text is lost if the text is empty, as in the last chunk, and else stands behind the
// text, where a call could take it for its own.
type interceptor struct {
	usage *usage
	// finishReason is why the reply ends; empty: it has not said so. blockReason is why the prompt was not read.
	finishReason, blockReason string
	// signatures are those of the texts, by their place among the texts; of an unsigned one it is empty.
	signatures []string
	inText     bool
	// texts is how many texts fantasy has begun; held is a reasoning that it has begun and not yet filled.
	texts int
	held  *fantasy.StreamPart
}

// Repair returns the model with what fantasy loses of a stream.
func Repair(model fantasy.LanguageModel) fantasy.LanguageModel {
	return intercept.Model(model, func() intercept.Interceptor { return &interceptor{} })
}

// usage is what the protocol tells. The prompt includes what came from the cache, and what Gemini's own tools brought
// to read is part of neither it nor the candidates.
type usage struct {
	Prompt     int64 `json:"promptTokenCount"`
	ToolPrompt int64 `json:"toolUsePromptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
	Total      int64 `json:"totalTokenCount"`
}

type chunk struct {
	Candidates []struct {
		FinishReason string `json:"finishReason"`
		Content      struct {
			Parts []contentPart `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *usage `json:"usageMetadata"`
	Error any    `json:"error"`
}

type contentPart struct {
	Text      *string         `json:"text"`
	Thought   bool            `json:"thought"`
	Signature string          `json:"thoughtSignature"`
	Call      json.RawMessage `json:"functionCall"`
}

// Line implements intercept.Interceptor. Gemini sends few chunks, and counts in each.
func (i *interceptor) Line(line []byte) []byte {
	data, ok := intercept.EventData(line)
	var c chunk
	if !ok || !bytes.HasPrefix(data, []byte("{")) || json.Unmarshal(data, &c) != nil {
		return line
	}
	if c.Error != nil { // Google's library takes for an error what is no event.
		return data
	}
	if c.Usage != nil {
		i.usage = c.Usage
	}
	i.blockReason = cmp.Or(c.PromptFeedback.BlockReason, i.blockReason)
	if len(c.Candidates) > 0 {
		i.finishReason = cmp.Or(c.Candidates[0].FinishReason, i.finishReason)
		for _, part := range c.Candidates[0].Content.Parts {
			i.read(part)
		}
	}
	return line
}

// says reports whether the part has a text, be it a thought.
func (p contentPart) says() bool { return p.Text != nil && *p.Text != "" }

// read counts the texts as fantasy does.
func (i *interceptor) read(part contentPart) {
	said := part.says()
	switch {
	case part.Call != nil || part.Thought && said:
		i.inText = false
	case part.Text != nil && !part.Thought:
		if said && !i.inText {
			i.inText, i.signatures = true, append(i.signatures, "")
		}
		if n := len(i.signatures); n > 0 && part.Signature != "" {
			i.signatures[n-1] = part.Signature
		}
	}
}

// Part implements intercept.Interceptor.
func (i *interceptor) Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	held := i.held
	i.held = nil
	if i.signsText(part) {
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
		i.held = &part
		return true
	case fantasy.StreamPartTypeTextStart:
		i.texts++
	case fantasy.StreamPartTypeTextEnd:
		if signature := i.signature(); signature != "" {
			part.ProviderMetadata = fantasy.ProviderMetadata{google.Name: &google.ReasoningMetadata{Signature: signature}}
		}
	case fantasy.StreamPartTypeFinish, fantasy.StreamPartTypeError:
		part = i.finish(part)
	}
	return yield(part)
}

// finish is the end of the stream with the right counts, or an error if the stream did not say that it ends.
func (i *interceptor) finish(part fantasy.StreamPart) fantasy.StreamPart {
	switch {
	case part.Type == fantasy.StreamPartTypeError && i.blockReason != "":
		// Without a candidate fantasy takes the stream for an incomplete one.
		part = fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish}
	case part.Type == fantasy.StreamPartTypeError:
		return part
	}
	if i.finishReason == "" && i.blockReason == "" {
		return fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: fantasy.NewIncompleteStreamError()}
	}
	part.Usage = i.counts(part.Usage)
	return finish.Mark(part, finish.Last{Reason: cmp.Or(i.blockReason, i.finishReason), Blocked: i.blockReason != ""})
}

// signature is that of the text that fantasy is at; empty if it has none.
func (i *interceptor) signature() string {
	if i.texts == 0 || i.texts > len(i.signatures) {
		return ""
	}
	return i.signatures[i.texts-1]
}

// signsText reports whether a reasoning ends with the signature of the text that fantasy is at, which keeps it itself.
func (i *interceptor) signsText(end fantasy.StreamPart) bool {
	signed, ok := end.ProviderMetadata[google.Name].(*google.ReasoningMetadata)
	return ok && end.Type == fantasy.StreamPartTypeReasoningEnd && signed.Signature != "" &&
		signed.Signature == i.signature()
}

// counts are the newest counts, or else those that are known otherwise.
func (i *interceptor) counts(otherwise fantasy.Usage) fantasy.Usage {
	if i.usage == nil {
		return otherwise
	}
	return fantasy.Usage{
		InputTokens: i.usage.Prompt + i.usage.ToolPrompt, CacheReadTokens: i.usage.Cached, OutputTokens: i.usage.output(),
		ReasoningTokens: i.usage.Thoughts, TotalTokens: i.usage.Total,
	}
}

// output is what the model produced. Google counts the thoughts beside the candidates; some models were seen to count
// them among these, which their total shows.
func (u *usage) output() int64 {
	if u.Prompt+u.ToolPrompt+u.Candidates == u.Total {
		return u.Candidates
	}
	return u.Candidates + u.Thoughts
}
