// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatcompletions repairs what fantasy loses of OpenAI's Chat Completions protocol as those who imitate it
// speak it. A reply that did not say that it ends is none.
package chatcompletions

import (
	"bytes"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/intercept"
)

// interceptor repairs a stream. fantasy takes one that ends behind a whole call for a whole reply; it is one only with
// a finish_reason, or where the server says by [DONE] that it has sent everything. Some servers give all calls of a
// reply the index 0, and fantasy makes one call of them. Of OpenRouter's reasoning in a form that fantasy has no name
// for, it drops the first piece.
type interceptor struct {
	ended bool
	calls callIndexes
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

// Line implements intercept.Interceptor.
func (i *interceptor) Line(line []byte) []byte {
	data, ok := intercept.EventData(line)
	if !ok {
		return line
	}
	i.ended = i.ended || bytes.Equal(data, intercept.EndOfEvents) || finishes(data)
	if i.first != nil {
		line = i.first.line(line, data)
	}
	if i.counts != nil {
		i.counts.read(data)
	}
	if bytes.Contains(data, []byte(`"tool_calls"`)) {
		line = i.calls.line(line)
	}
	return line
}

// finishes reports whether a chunk says why the reply ends. A quotation mark within a text has a backslash in front.
func finishes(data []byte) bool {
	for {
		_, after, found := bytes.Cut(data, []byte(`"finish_reason"`))
		if !found {
			return false
		}
		value, ok := bytes.CutPrefix(bytes.TrimLeft(after, " \t"), []byte(":"))
		value = bytes.TrimLeft(value, " \t")
		if ok && bytes.HasPrefix(value, []byte(`"`)) && !bytes.HasPrefix(value, []byte(`""`)) {
			return true
		}
		data = after
	}
}

// Part implements intercept.Interceptor.
func (i *interceptor) Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	if part.Type == fantasy.StreamPartTypeFinish {
		if !i.ended {
			return yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: fantasy.NewIncompleteStreamError()})
		}
		if i.counts != nil {
			part.Usage = i.counts.in(part.Usage)
		}
	}
	return yield(part)
}
