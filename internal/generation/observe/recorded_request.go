// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"slices"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/observe/redact"
	"parley.dev/parley/internal/generation/prompt"
)

const (
	// maxMessages, maxParts and maxTools are what the resource takes.
	maxMessages, maxParts, maxTools = 512, 64, 128
	// promptRoom is how many bytes of the prompt's texts are recorded in full, the newest first; oldRoom how many of the
	// older ones, oldTextRunes characters of each.
	promptRoom, oldRoom, oldTextRunes = 192 << 10, 32 << 10, 100
	// partCost is what a part takes besides its text.
	partCost = 32
	// schemaRoom is how many bytes of tools' schemas are recorded.
	schemaRoom = 64 << 10
)

// options are written as JSON.
type options struct {
	MaxOutputTokens  *int64                  `json:"maxOutputTokens,omitempty"`
	Temperature      *float64                `json:"temperature,omitempty"`
	TopP             *float64                `json:"topP,omitempty"`
	TopK             *int64                  `json:"topK,omitempty"`
	PresencePenalty  *float64                `json:"presencePenalty,omitempty"`
	FrequencyPenalty *float64                `json:"frequencyPenalty,omitempty"`
	Provider         fantasy.ProviderOptions `json:"provider,omitempty"`
}

// recordRequest is what is recorded of what a model is asked.
func recordRequest(c *fantasy.Call, redactor redact.Redactor) v1alpha1.DebugRequest {
	out := v1alpha1.DebugRequest{Messages: recordMessages(c.Prompt, redactor)}
	out.OmittedMessages = int32(len(c.Prompt) - len(out.Messages))
	room := schemaRoom
	for _, tool := range c.Tools[:min(len(c.Tools), maxTools)] {
		out.Tools = append(out.Tools, recordTool(tool, &room, redactor))
	}
	if c.ToolChoice != nil {
		out.ToolChoice = bound(string(*c.ToolChoice), 128)
	}
	out.Options = shortened(asJSON(options{
		MaxOutputTokens: c.MaxOutputTokens, Temperature: c.Temperature, TopP: c.TopP, TopK: c.TopK,
		PresencePenalty: c.PresencePenalty, FrequencyPenalty: c.FrequencyPenalty, Provider: c.ProviderOptions,
	}, redactor), v1alpha1.MaxDebugTextRunes)
	return out
}

// recordMessages takes the system prompt, and the newest of the others for which there is room.
func recordMessages(messages fantasy.Prompt, redactor redact.Redactor) []v1alpha1.DebugMessage {
	room := promptRoom
	var system, others []v1alpha1.DebugMessage
	if len(messages) > 0 && messages[0].Role == fantasy.MessageRoleSystem {
		system, messages = append(system, recordMessage(messages[0], &room, redactor)), messages[1:]
	}
	for _, message := range slices.Backward(messages) {
		if len(system)+len(others) == maxMessages || room <= -oldRoom {
			break
		}
		others = append(others, recordMessage(message, &room, redactor))
	}
	slices.Reverse(others)
	return append(system, others...)
}

func asJSON(v any, redactor redact.Redactor) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "[left out: cannot be written as JSON]"
	}
	return redactor.Text(string(raw))
}

// recordMessage takes off the room what it records.
func recordMessage(m fantasy.Message, room *int, redactor redact.Redactor) v1alpha1.DebugMessage {
	out := v1alpha1.DebugMessage{Role: bound(string(m.Role), 32), OmittedParts: int32(max(0, len(m.Content)-maxParts))}
	for _, content := range m.Content[:min(len(m.Content), maxParts)] {
		runes := v1alpha1.MaxDebugTextRunes
		if *room <= 0 {
			runes = oldTextRunes
		}
		part := redacted(promptPart(content), runes, redactor)
		*room -= len(part.Text) + partCost
		out.Parts = append(out.Parts, part)
	}
	return out
}

// promptPart is a part of a prompt with all of its text. Of files it takes the size, or the URL that the provider is
// handed.
func promptPart(content fantasy.MessagePart) v1alpha1.DebugPart {
	switch c := content.(type) {
	case fantasy.TextPart:
		return v1alpha1.DebugPart{Type: v1alpha1.DebugText, Text: c.Text}
	case fantasy.ReasoningPart:
		return v1alpha1.DebugPart{Type: v1alpha1.DebugReasoning, Text: c.Text}
	case fantasy.FilePart:
		_, from, _ := prompt.URLOf(c)
		return v1alpha1.DebugPart{Type: v1alpha1.DebugFile, Text: from, Name: c.Filename, MediaType: c.MediaType,
			Bytes: int64(len(c.Data))}
	case fantasy.ToolCallPart:
		return v1alpha1.DebugPart{Type: v1alpha1.DebugToolCall, ID: c.ToolCallID, Name: c.ToolName, Text: c.Input}
	case fantasy.ToolResultPart:
		return resultPart(c.ToolCallID, c.Output)
	}
	return v1alpha1.DebugPart{Type: v1alpha1.DebugText}
}

func resultPart(id string, output fantasy.ToolResultOutputContent) v1alpha1.DebugPart {
	part := v1alpha1.DebugPart{Type: v1alpha1.DebugToolResult, ID: id}
	switch o := output.(type) {
	case fantasy.ToolResultOutputContentText:
		part.Text = o.Text
	case fantasy.ToolResultOutputContentError:
		part.IsError = true
		if o.Error != nil {
			part.Text = o.Error.Error()
		}
	case fantasy.ToolResultOutputContentMedia:
		part.Text, part.MediaType, part.Bytes = o.Text, o.MediaType, int64(len(o.Data))/4*3
	}
	return part
}

func recordTool(tool fantasy.Tool, room *int, redactor redact.Redactor) v1alpha1.DebugTool {
	out := v1alpha1.DebugTool{Name: bound(tool.GetName(), 256)}
	var schema any
	switch t := tool.(type) {
	case fantasy.FunctionTool:
		out.Description, schema = shortened(redactor.Text(t.Description), 1000), t.InputSchema
	case fantasy.ProviderDefinedTool:
		out.Description, schema = bound(t.ID, 1000), t.Args
	default:
		return out
	}
	out.InputSchema = "[left out: the tools are too large]"
	if *room > 0 {
		out.InputSchema = shortened(asJSON(schema, redactor), v1alpha1.MaxDebugTextRunes)
		*room -= len(out.InputSchema)
	}
	return out
}
