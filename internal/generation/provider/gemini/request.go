// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"charm.land/fantasy"
	"google.golang.org/genai"

	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
)

// body is the body of a request.
type body struct {
	Contents          []*genai.Content        `json:"contents"`
	SystemInstruction *genai.Content          `json:"systemInstruction,omitempty"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
	SafetySettings    []*genai.SafetySetting  `json:"safetySettings,omitempty"`
	Tools             []*genai.Tool           `json:"tools,omitempty"`
	ToolConfig        *genai.ToolConfig       `json:"toolConfig,omitempty"`
	CachedContent     string                  `json:"cachedContent,omitempty"`
	// showsOwnCalls is whether calls of Google's own tools are among the contents, or can be in the reply.
	showsOwnCalls bool
}

// addPrompt writes the prompt. Thoughts do not go back; the signature of one is for the text or call behind it,
// unless that has its own.
func (p *protocol) addPrompt(b *body, messages fantasy.Prompt) {
	system, names := &genai.Content{Role: genai.RoleUser}, map[string]string{}
	for i := range messages {
		content, signature := &genai.Content{Role: genai.RoleUser}, ""
		for _, part := range messages[i].Content {
			state := wire.StateOf(part)
			signature = cmp.Or(state.Signature, signature)
			parts := p.parts(part, names)
			var item genai.Part
			if json.Unmarshal(state.Item, &item) == nil {
				parts, b.showsOwnCalls = []*genai.Part{&item}, true
			} else if len(parts) > 0 {
				parts[0].ThoughtSignature, signature = binary(signature), ""
			}
			content.Parts = append(content.Parts, parts...)
		}
		switch messages[i].Role {
		case fantasy.MessageRoleSystem:
			system.Parts = append(system.Parts, content.Parts...)
			continue
		case fantasy.MessageRoleAssistant:
			content.Role = genai.RoleModel
		}
		if len(content.Parts) > 0 {
			b.Contents = append(b.Contents, content)
		}
	}
	b.instruct(system, p.gemma)
}

// instruct writes the system message. Gemma takes none, and reads it before what the user says.
func (b *body) instruct(system *genai.Content, gemma bool) {
	n := len(system.Parts)
	switch {
	case n == 0:
	case gemma && len(b.Contents) > 0 && b.Contents[0].Role == genai.RoleUser:
		system.Parts[n-1].Text += "\n\n"
		b.Contents[0].Parts = append(system.Parts, b.Contents[0].Parts...)
	default:
		b.SystemInstruction = system
	}
}

// parts are what Google reads of a part of the prompt. names are those of the functions of calls, by the ids of calls.
func (p *protocol) parts(part fantasy.MessagePart, names map[string]string) []*genai.Part {
	switch part := part.(type) {
	case fantasy.TextPart:
		if part.Text != "" {
			return []*genai.Part{{Text: part.Text}}
		}
	case fantasy.FilePart:
		if _, from, ok := prompt.URLOf(part); ok {
			return []*genai.Part{genai.NewPartFromURI(from, part.MediaType)}
		}
		return []*genai.Part{genai.NewPartFromBytes(part.Data, part.MediaType)}
	case fantasy.ToolCallPart:
		name := functionName(part.ToolName)
		names[part.ToolCallID] = name
		call := &genai.FunctionCall{ID: part.ToolCallID, Name: name}
		_ = decode([]byte(part.Input), &call.Args) // What is no object is no argument.
		return []*genai.Part{{FunctionCall: call}}
	case fantasy.ToolResultPart:
		return p.result(&genai.FunctionResponse{ID: part.ToolCallID, Name: names[part.ToolCallID]}, part.Output)
	}
	return nil
}

// result are the parts of the result of a call. Before Gemini 3 a file is a part next to it.
func (p *protocol) result(to *genai.FunctionResponse, output fantasy.ToolResultOutputContent) []*genai.Part {
	parts, text := []*genai.Part{{FunctionResponse: to}}, ""
	switch output := output.(type) {
	case fantasy.ToolResultOutputContentText:
		text = output.Text
	case fantasy.ToolResultOutputContentError:
		text = output.Error.Error()
	case fantasy.ToolResultOutputContentMedia:
		text = output.Text
		if data := binary(output.Data); p.gemini3 {
			to.Parts = append(to.Parts, genai.NewFunctionResponsePartFromBytes(data, output.MediaType))
		} else {
			parts = append(parts, genai.NewPartFromBytes(data, output.MediaType))
		}
	}
	to.Response = map[string]any{"result": text}
	return parts
}

// binary is what base64 stands for. What is none stands for nothing: no signature is better than a false one.
func binary(encoded string) []byte {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil
	}
	return decoded
}

// decode reads JSON. Numbers stay as they are written.
func decode(data []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	return decoder.Decode(into)
}
