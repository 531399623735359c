// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

func user(content string) v1alpha1.ChatMessage {
	return v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser, Content: content}}
}
func said(role v1alpha1.MessageRole, parts ...v1alpha1.MessagePart) v1alpha1.ChatMessage {
	return v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: role, Parts: parts}}
}
func assistant(parts ...v1alpha1.MessagePart) v1alpha1.ChatMessage {
	return said(v1alpha1.RoleAssistant, parts...)
}
func tool(parts ...v1alpha1.MessagePart) v1alpha1.ChatMessage {
	return said(v1alpha1.RoleTool, parts...)
}
func text(s string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: &s}
}
func reasoning(s string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartReasoning, Text: &s}
}
func call(id, input string) v1alpha1.MessagePart { return callOf(id, "t", input) }
func callOf(id, name, input string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartToolCall,
		ToolCall: &v1alpha1.ToolCall{ID: id, Name: name, Input: input}}
}
func result(id, output string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartToolResult,
		ToolResult: &v1alpha1.ToolResult{ID: id, Name: "t", Output: output}}
}

// by says which model wrote a message.
func by(provider v1alpha1.ModelProvider, model string, m v1alpha1.ChatMessage) v1alpha1.ChatMessage {
	m.Spec.Generation = &v1alpha1.MessageGeneration{Model: &v1alpha1.ModelIdentity{Provider: string(provider),
		Name: model}}
	return m
}

// byProvider makes a part one of a tool that the provider runs.
func byProvider(p v1alpha1.MessagePart) v1alpha1.MessagePart {
	if p.ToolCall != nil {
		p.ToolCall.ProviderExecuted = true
	} else {
		p.ToolResult.ProviderExecuted = true
	}
	return p
}

// with gives a part the metadata of its provider.
func with(metadata string, p v1alpha1.MessagePart) v1alpha1.MessagePart {
	p.ProviderMetadata = metadata
	return p
}

// signature is what Anthropic wants back with its reasoning.
const signature = `{"parley":{"type":"parley.state","data":{"protocol":"Anthropic Messages","signature":"signed"}}}`

// found is what Anthropic wants back with the result of a search.
const found = `{"parley":{"type":"parley.state","data":{"protocol":"Anthropic Messages","item":{"type":"web_search_tool_result","content":[{"type":"web_search_result","url":"https://example.com","title":"Example","encrypted_content":"c2NyaXB0ZWQ6Zm91bmQ6aHR0cHM6Ly9leGFtcGxlLmNvbQ=="}]}}}}`

// outline is a prompt in one line: what is signed has a *, what marks a cache ends in a ^.
func outline(messages []fantasy.Message) string {
	var lines []string
	for _, m := range messages {
		line := string(m.Role)
		for _, p := range m.Content {
			line += " " + outlineOf(p)
			if p.Options() != nil {
				line += "*"
			}
		}
		if m.ProviderOptions != nil {
			line += " ^"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, " | ")
}

func outlineOf(p fantasy.MessagePart) string {
	switch p := p.(type) {
	case fantasy.TextPart:
		return p.Text
	case fantasy.ReasoningPart:
		return "(" + p.Text + ")"
	case fantasy.FilePart:
		return fmt.Sprintf("<%s %s %d>", p.Filename, p.MediaType, len(p.Data))
	case fantasy.ToolCallPart:
		return fmt.Sprintf("%s=%s%s", p.ToolCallID, p.ToolName, p.Input)
	case fantasy.ToolResultPart:
		switch out := p.Output.(type) {
		case fantasy.ToolResultOutputContentText:
			return p.ToolCallID + ":" + out.Text
		case fantasy.ToolResultOutputContentError:
			return p.ToolCallID + "!" + strings.Fields(out.Error.Error())[0]
		}
	}
	return "?"
}
