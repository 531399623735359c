// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// chatEar mends a stream of OpenAI's chat protocol. fantasy takes one that ends behind a whole call for a whole reply; it is one
// only with a finish_reason, or where the server says by [DONE] that it has sent everything. Some servers give all calls of a reply
// the index 0, and fantasy makes one call of them. Of OpenRouter's reasoning in a form that fantasy has no name for, it drops the
// first piece. Vercel counts Gemini's reasoning beside its output.
type chatEar struct {
	ended bool
	calls callIndexes
	// first puts the first piece of reasoning where fantasy looks for it; nil: it does find it.
	first *firstReasoning
	// apart is true where the reasoning is not part of the output.
	apart bool
}

func newChatEar(spec *v1alpha1.ChatModelConfigSpec) func() ear {
	return func() ear {
		e := &chatEar{apart: spec.Provider == v1alpha1.ProviderVercel && strings.HasPrefix(spec.Model, "google/")}
		if spec.Provider == v1alpha1.ProviderOpenRouter {
			e.first = &firstReasoning{}
		}
		return e
	}
}

// line implements ear.
func (e *chatEar) line(line []byte) []byte {
	data, ok := eventData(line)
	if !ok {
		return line
	}
	e.ended = e.ended || bytes.Equal(data, endOfEvents) || finishes(data)
	if e.first != nil {
		line = e.first.line(line, data)
	}
	if bytes.Contains(data, []byte(`"tool_calls"`)) {
		line = e.calls.line(line)
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

// part implements ear.
func (e *chatEar) part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	if part.Type == fantasy.StreamPartTypeFinish {
		if !e.ended {
			return yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: fantasy.NewIncompleteStreamError()})
		}
		if e.apart {
			part.Usage.OutputTokens += part.Usage.ReasoningTokens
		}
	}
	return yield(part)
}

// amend decodes the data of a line, and encodes it again if change changes it.
func amend(line []byte, change func(chunk object) bool) []byte {
	data, _ := eventData(line)
	chunk := object{}
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	if in.Decode(&chunk) != nil || !change(chunk) {
		return line
	}
	var out bytes.Buffer
	out.WriteString("data: ")
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(chunk) != nil {
		return line
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// listIn is a list of objects within an object; the rest of the list is left out.
func listIn(in object, name string) (all []object) {
	list, _ := in[name].([]any)
	for _, each := range list {
		if o, ok := each.(object); ok {
			all = append(all, o)
		}
	}
	return all
}

// deltaOf is what the first choice of a chunk adds.
func deltaOf(chunk object) object {
	choices := listIn(chunk, "choices")
	if len(choices) == 0 {
		return nil
	}
	delta, _ := choices[0]["delta"].(object)
	return delta
}

// firstReasoning copies the text of the first piece of a reasoning to where fantasy looks for it.
type firstReasoning struct{ within bool }

var reasoningDetails = []byte(`"reasoning_details":[{`)

func (f *firstReasoning) line(line, data []byte) []byte {
	within := f.within
	if f.within = bytes.Contains(data, reasoningDetails); within || !f.within {
		return line
	}
	return amend(line, func(chunk object) bool {
		details := listIn(deltaOf(chunk), "reasoning_details")
		if len(details) == 0 || details[0]["type"] != "reasoning.text" || details[0]["summary"] != nil {
			return false
		}
		details[0]["summary"] = details[0]["text"]
		return true
	})
}
