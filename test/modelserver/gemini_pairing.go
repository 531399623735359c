// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// validate holds that a content says something, and that each part says one thing.
func (c geminiContent) validate(i int, model string) *apiError {
	if len(c.Parts) == 0 {
		return refuse("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
	}
	for j, p := range c.Parts {
		at := fmt.Sprintf("contents[%d].parts[%d]", i, j)
		said := 0
		for _, is := range []bool{p.Text != nil, p.FunctionCall != nil, p.FunctionResponse != nil, p.InlineData != nil,
			p.FileData != nil} {
			if is {
				said++
			}
		}
		if said != 1 {
			return refuse("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field\n", at)
		}
		if err := p.validateFunction(at, c.Role); err != nil {
			return err
		}
		if err := p.validateFile(at, model); err != nil {
			return err
		}
	}
	return nil
}

func (p geminiPart) validateFunction(at, role string) *apiError {
	var object map[string]any
	switch {
	case p.FunctionCall != nil:
		if role != "model" {
			return refuse("* GenerateContentRequest.%s: function call parts are for the role model.\n", at)
		}
		if p.FunctionCall.Name == "" {
			return refuse("* GenerateContentRequest.%s.function_call.name: Name cannot be empty.\n", at)
		}
		if len(p.FunctionCall.Args) > 0 && json.Unmarshal(p.FunctionCall.Args, &object) != nil {
			return refuse("Invalid value at '%s.function_call.args' (type.googleapis.com/google.protobuf.Struct)", at)
		}
	case p.FunctionResponse != nil:
		if role == "model" {
			return refuse("* GenerateContentRequest.%s: function response parts are for the role user.\n", at)
		}
		if p.FunctionResponse.Name == "" {
			return refuse("* GenerateContentRequest.%s.function_response.name: Name cannot be empty.\n", at)
		}
		if json.Unmarshal(p.FunctionResponse.Response, &object) != nil {
			return refuse("Invalid value at '%s.function_response.response' (type.googleapis.com/google.protobuf.Struct)", at)
		}
	}
	return nil
}

func (c geminiContent) calls() (calls []geminiCall) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			calls = append(calls, *p.FunctionCall)
		}
	}
	return calls
}

func (c geminiContent) responses() (responses []geminiResponse) {
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			responses = append(responses, *p.FunctionResponse)
		}
	}
	return responses
}

// geminiPairing holds that calls follow a user's turn or results,
// and that the very next turn has exactly their results.
func geminiPairing(contents []geminiContent) *apiError {
	var asked []geminiCall
	for i, c := range contents {
		responses := c.responses()
		switch {
		case len(responses) > 0 && len(asked) == 0:
			return refuse("Please ensure that function response turn comes immediately after a function call turn.")
		case len(asked) > 0 && len(responses) != len(asked):
			return refuse("Please ensure that the number of function response parts is equal to the number of function call " +
				"parts of the function call turn.")
		}
		if err := geminiAnswers(asked, responses); err != nil {
			return err
		}
		asked = c.calls()
		if len(asked) > 0 && (i == 0 || contents[i-1].Role == "model") {
			return refuse("Please ensure that function call turn comes immediately after a user turn or after a function " +
				"response turn.")
		}
	}
	return nil
}

// geminiAnswers holds that each result names a call, by its id where the call has one.
func geminiAnswers(asked []geminiCall, responses []geminiResponse) *apiError {
	left := slices.Clone(asked)
	for _, r := range responses {
		at := slices.IndexFunc(left,
			func(c geminiCall) bool { return c.Name == r.Name && (c.ID == "" || r.ID == "" || c.ID == r.ID) })
		if at < 0 {
			return refuse("Please ensure that function response name and id match those of a function call: %s has none.",
				cmp.Or(r.ID, r.Name))
		}
		left = slices.Delete(left, at, at+1)
	}
	return nil
}

// geminiMark begins each signature. Real ones are as binary: no text.
var geminiMark = []byte("\x0a\xff\xfe\x80\x00scripted:")

// geminiSignatures holds that a signature is one of the provider's own, unchanged, and that the newer models get theirs
// back with the first call of each step since the user spoke.
func geminiSignatures(model string, contents []geminiContent) *apiError {
	turn := 0
	for i, c := range contents {
		if c.Role == "user" && len(c.responses()) == 0 {
			turn = i
		}
	}
	for i, c := range contents {
		first := true
		for j, p := range c.Parts {
			if len(p.ThoughtSignature) > 0 && !bytes.HasPrefix(p.ThoughtSignature, geminiMark) {
				return refuse("Thought signature is not valid.")
			}
			if p.FunctionCall == nil {
				continue
			}
			if first && i > turn && len(p.ThoughtSignature) == 0 && strings.HasPrefix(model, "gemini-3") {
				return refuse("Function call is missing a thought_signature in functionCall parts. This is required for tools "+
					"to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, "+
					"function call `default_api:%s` , position %d.", p.FunctionCall.Name, j+1)
			}
			first = false
		}
	}
	return nil
}

func (c geminiContent) turns() []turn {
	kind := turnUser
	if c.Role == "model" {
		kind = turnAssistant
	}
	var out []turn
	for _, p := range c.Parts {
		switch {
		case p.FunctionCall != nil:
			out = append(out, turn{kind: turnCall, id: cmp.Or(p.FunctionCall.ID, p.FunctionCall.Name), name: p.FunctionCall.Name,
				text: string(p.FunctionCall.Args)})
		case p.FunctionResponse != nil:
			out = append(out, turn{kind: turnResult, id: cmp.Or(p.FunctionResponse.ID, p.FunctionResponse.Name),
				text: p.FunctionResponse.text()})
		case p.Text != nil && !p.Thought:
			// The text parts of one content are one text.
			if n := len(out); n > 0 && out[n-1].kind == kind {
				out[n-1].text += *p.Text
				continue
			}
			out = append(out, turn{kind: kind, text: *p.Text})
		}
	}
	return out
}

// text is the result under the name that callers give it, or all that they sent.
func (r geminiResponse) text() string {
	var named struct {
		Result *string `json:"result"`
		Output *string `json:"output"`
	}
	if json.Unmarshal(r.Response, &named) == nil {
		if said := cmp.Or(named.Result, named.Output); said != nil {
			return *said
		}
	}
	return string(r.Response)
}
