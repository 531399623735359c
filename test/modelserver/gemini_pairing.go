// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"
)

// validateGemini checks that a content is not empty, and that each part has one kind of data.
func validateGemini(c *genai.Content, i int, model string) *apiError {
	if len(c.Parts) == 0 {
		return refuse("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
	}
	for j, p := range c.Parts {
		at := fmt.Sprintf("contents[%d].parts[%d]", i, j)
		kinds := count(p.Text != "", p.FunctionCall != nil, p.FunctionResponse != nil, p.InlineData != nil,
			p.FileData != nil)
		if kinds != 1 {
			return refuse("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field\n", at)
		}
		if err := validateGeminiFunction(p, at, c.Role); err != nil {
			return err
		}
		if err := validateGeminiFile(p, at, model); err != nil {
			return err
		}
	}
	return nil
}

func validateGeminiFunction(p *genai.Part, at, role string) *apiError {
	switch call, response := p.FunctionCall, p.FunctionResponse; {
	case call != nil && role != genai.RoleModel:
		return refuse("* GenerateContentRequest.%s: function call parts are for the role model.\n", at)
	case call != nil && call.Name == "":
		return refuse("* GenerateContentRequest.%s.function_call.name: Name cannot be empty.\n", at)
	case response != nil && role == genai.RoleModel:
		return refuse("* GenerateContentRequest.%s: function response parts are for the role user.\n", at)
	case response != nil && response.Name == "":
		return refuse("* GenerateContentRequest.%s.function_response.name: Name cannot be empty.\n", at)
	}
	return nil
}

func geminiCalls(c *genai.Content) (calls []*genai.FunctionCall) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			calls = append(calls, p.FunctionCall)
		}
	}
	return calls
}

func geminiResponses(c *genai.Content) (responses []*genai.FunctionResponse) {
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			responses = append(responses, p.FunctionResponse)
		}
	}
	return responses
}

// geminiPairing holds that calls follow a user's turn or results,
// and that the very next turn has exactly their results.
func geminiPairing(contents []*genai.Content) *apiError {
	var asked []*genai.FunctionCall
	for i, c := range contents {
		responses := geminiResponses(c)
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
		asked = geminiCalls(c)
		if len(asked) > 0 && (i == 0 || contents[i-1].Role == "model") {
			return refuse("Please ensure that function call turn comes immediately after a user turn or after a function " +
				"response turn.")
		}
	}
	return nil
}

// geminiAnswers holds that each result names a call, by its id where the call has one.
func geminiAnswers(asked []*genai.FunctionCall, responses []*genai.FunctionResponse) *apiError {
	left := slices.Clone(asked)
	for _, r := range responses {
		at := slices.IndexFunc(left,
			func(c *genai.FunctionCall) bool {
				return c.Name == r.Name && (c.ID == "" || r.ID == "" || c.ID == r.ID)
			})
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
func geminiSignatures(model string, contents []*genai.Content) *apiError {
	turn := 0
	for i, c := range contents {
		if c.Role == "user" && len(geminiResponses(c)) == 0 {
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

func geminiTurns(c *genai.Content) []turn {
	kind := turnUser
	if c.Role == genai.RoleModel {
		kind = turnAssistant
	}
	var out []turn
	for _, p := range c.Parts {
		switch call, response := p.FunctionCall, p.FunctionResponse; {
		case call != nil:
			out = append(out, turn{kind: turnCall, id: cmp.Or(call.ID, call.Name), name: call.Name,
				text: string(encode(call.Args))})
		case response != nil:
			out = append(out, turn{kind: turnResult, id: cmp.Or(response.ID, response.Name), text: geminiResult(response)})
		case p.Text != "" && !p.Thought:
			// The text parts of one content are one text.
			if n := len(out); n > 0 && out[n-1].kind == kind {
				out[n-1].text += p.Text
				continue
			}
			out = append(out, turn{kind: kind, text: p.Text})
		}
	}
	return out
}

// geminiResult is the text under the name that callers use for the result, or the whole response.
func geminiResult(r *genai.FunctionResponse) string {
	for _, name := range []string{"result", "output"} {
		if text, ok := r.Response[name].(string); ok {
			return text
		}
	}
	return string(encode(r.Response))
}
