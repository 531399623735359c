// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatcompletions repairs what fantasy loses of OpenAI's Chat Completions protocol as those who imitate it
// speak it. A reply that did not say that it ends is none.
package chatcompletions

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/intercept"
)

// interceptor repairs a stream. fantasy takes one that ends behind a whole call for a whole reply; it is one only with
// a finish_reason, or where the server says by [DONE] that it has sent everything. Some servers give all calls of a
// reply the index 0, and fantasy makes one call of them. Of OpenRouter's reasoning in a form that fantasy has no name
// for, it drops the first piece. It drops a refusal, which becomes text.
type interceptor struct {
	// done is whether the server has said that it has sent everything, finishReason why the reply ends.
	done         bool
	finishReason string
	refused      bool
	calls        calls
	// first puts the first piece of reasoning where fantasy looks for it; nil: it does find it.
	first *firstReasoning
	// counts are those of a stream that counts the reasoning beside the output; nil: this one does not.
	counts *apartCounts
}

// Repair returns the model of a configuration with what fantasy loses of a stream.
func Repair(model fantasy.LanguageModel, spec *v1alpha1.ChatModelConfigSpec) fantasy.LanguageModel {
	return intercept.Model(model, func() intercept.Interceptor {
		i := &interceptor{}
		if countsApart(spec) {
			i.counts = &apartCounts{}
		}
		if spec.Provider == v1alpha1.ProviderOpenRouter {
			i.first = &firstReasoning{}
		}
		return i
	})
}

// stopChunk stands in for the finish_reason of a server that sends [DONE] without one.
var stopChunk = []byte(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n")

// Line implements intercept.Interceptor.
func (i *interceptor) Line(line []byte) []byte {
	data, ok := intercept.EventData(line)
	if !ok {
		return line
	}
	if bytes.Equal(data, intercept.EndOfEvents) {
		i.done = true
		if i.finishReason == "" {
			line = slices.Concat(stopChunk, line)
		}
		return slices.Concat(i.calls.rest(), line)
	}
	reason := finishReasonIn(data)
	if reason != "" {
		i.finishReason = reason
	}
	if i.first != nil {
		line = i.first.line(line, data)
	}
	if i.counts != nil {
		i.counts.read(data)
	}
	line = i.amended(line, data)
	if reason != "" {
		line = slices.Concat(i.calls.rest(), line)
	}
	return line
}

// amended is the line with what fantasy cannot read in a form that it can.
func (i *interceptor) amended(line, data []byte) []byte {
	if has(data, `"delta":`, 'n') || bytes.Contains(data, []byte(`"message":`)) {
		line = amend(line, withDelta)
	}
	if bytes.Contains(data, []byte(`"tool_calls"`)) && callPieces.Match(data) {
		line = i.calls.line(line)
	}
	if has(data, `"refusal":`, '"') {
		line = amend(line, i.refuse)
	}
	if has(data, `"content":`, '[') {
		line = amend(line, joinContent)
	}
	if bytes.Contains(data, []byte(`"error":`)) {
		line = amend(line, withoutError)
	}
	if i.finishReason == "length" && bytes.Contains(data, []byte(`"length"`)) {
		line = amend(line, stopped)
	}
	return line
}

// withoutError takes an error that is none out of a chunk: OpenAI's library takes its presence for one.
func withoutError(chunk object) bool {
	value, ok := chunk["error"]
	if !ok || value != nil && value != "" && value != false && !isEmpty(value) {
		return false
	}
	delete(chunk, "error")
	return true
}

func isEmpty(value any) bool {
	fields, ok := value.(object)
	return ok && len(fields) == 0
}

// stopped hides from fantasy that the limit of tokens ended the reply: it would leave out all calls, also whole ones.
func stopped(chunk object) bool {
	choices := listIn(chunk, "choices")
	if len(choices) == 0 || choices[0]["finish_reason"] != "length" {
		return false
	}
	choices[0]["finish_reason"] = "stop"
	return true
}

// callPieces is a list of calls that is not empty.
var callPieces = regexp.MustCompile(`"tool_calls"\s*:\s*\[\s*\{`)

// has reports whether the field has a value that begins so.
func has(data []byte, field string, begin byte) bool {
	_, value, found := bytes.Cut(data, []byte(field))
	value = bytes.TrimLeft(value, " ")
	return found && len(value) > 0 && value[0] == begin
}

// withDelta puts what stands beside an absent delta into it: a message, or nothing.
func withDelta(chunk object) bool {
	choices := listIn(chunk, "choices")
	if len(choices) == 0 || choices[0]["delta"] != nil {
		return false
	}
	message, _ := choices[0]["message"].(object)
	if message == nil {
		message = object{}
	}
	choices[0]["delta"] = message
	return true
}

// joinContent makes one text of a list of parts.
func joinContent(chunk object) bool {
	delta := deltaOf(chunk)
	if _, ok := delta["content"].([]any); !ok {
		return false
	}
	var text strings.Builder
	for _, part := range listIn(delta, "content") {
		said, _ := part["text"].(string)
		text.WriteString(said)
	}
	delta["content"] = text.String()
	return true
}

// refuse makes text of a refusal.
func (i *interceptor) refuse(chunk object) bool {
	delta := deltaOf(chunk)
	refusal, _ := delta["refusal"].(string)
	if refusal == "" {
		return false
	}
	content, _ := delta["content"].(string)
	delta["content"], delta["refusal"], i.refused = content+refusal, nil, true
	return true
}

// finishReasonIn is why the reply ends, if the chunk says so. A quotation mark within a text has a backslash in front.
func finishReasonIn(data []byte) string {
	for {
		_, after, found := bytes.Cut(data, []byte(`"finish_reason"`))
		if !found {
			return ""
		}
		value, _ := bytes.CutPrefix(bytes.TrimLeft(after, " \t"), []byte(":"))
		if value, ok := bytes.CutPrefix(bytes.TrimLeft(value, " \t"), []byte(`"`)); ok {
			if reason, _, ended := bytes.Cut(value, []byte(`"`)); ended && len(reason) > 0 {
				return string(reason)
			}
		}
		data = after
	}
}

// Part implements intercept.Interceptor.
func (i *interceptor) Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	if part.Type == fantasy.StreamPartTypeFinish {
		if !i.done && i.finishReason == "" {
			return yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: fantasy.NewIncompleteStreamError()})
		}
		if i.counts != nil {
			part.Usage = i.counts.in(part.Usage)
		}
		part = finish.Mark(part, finish.Last{Reason: i.finishReason, Refused: i.refused})
	}
	return yield(part)
}
