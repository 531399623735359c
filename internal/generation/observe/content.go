// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/observe/redact"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/text/clip"
)

const (
	// maxMessages, maxParts and maxTools are limits of the resource.
	maxMessages, maxParts, maxTools = 512, 64, 128
	// The newest promptRoom bytes of a prompt are recorded in full. Then follow oldRoom bytes of older texts, each cut to
	// oldTextRunes characters.
	promptRoom, oldRoom, oldTextRunes = 192 << 10, 32 << 10, 100
	partCost                          = 32       // bytes of a part in addition to its text
	schemaRoom                        = 64 << 10 // bytes of the tools' schemas
)

type options struct {
	MaxOutputTokens  *int64                  `json:"maxOutputTokens,omitempty"`
	Temperature      *float64                `json:"temperature,omitempty"`
	TopP             *float64                `json:"topP,omitempty"`
	TopK             *int64                  `json:"topK,omitempty"`
	PresencePenalty  *float64                `json:"presencePenalty,omitempty"`
	FrequencyPenalty *float64                `json:"frequencyPenalty,omitempty"`
	Provider         fantasy.ProviderOptions `json:"provider,omitempty"`
}

// recordRequest returns the request without secrets, and within the limits of the resource.
func recordRequest(c *fantasy.Call, redactor redact.Redactor) v1beta1.DebugRequest {
	out := v1beta1.DebugRequest{Messages: recordMessages(c.Prompt, redactor)}
	out.OmittedMessages = int32(len(c.Prompt) - len(out.Messages))
	room := schemaRoom
	for _, tool := range c.Tools[:min(len(c.Tools), maxTools)] {
		out.Tools = append(out.Tools, recordTool(tool, &room, redactor))
	}
	if c.ToolChoice != nil {
		out.ToolChoice = bound(string(*c.ToolChoice), 128)
	}
	out.Options = shorten(redactor.Text(toJSON(options{
		MaxOutputTokens: c.MaxOutputTokens, Temperature: c.Temperature, TopP: c.TopP, TopK: c.TopK,
		PresencePenalty: c.PresencePenalty, FrequencyPenalty: c.FrequencyPenalty, Provider: c.ProviderOptions,
	})), v1beta1.MaxDebugTextRunes)
	return out
}

// recordMessages returns the system prompt, and the newest of the other messages that fit.
func recordMessages(messages fantasy.Prompt, redactor redact.Redactor) []v1beta1.DebugMessage {
	room := promptRoom
	var system, others []v1beta1.DebugMessage
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

func toJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "[left out: cannot be written as JSON]"
	}
	return string(raw)
}

// recordMessage subtracts the recorded bytes from the room.
func recordMessage(m fantasy.Message, room *int, redactor redact.Redactor) v1beta1.DebugMessage {
	out := v1beta1.DebugMessage{Role: bound(string(m.Role), 32), OmittedParts: int32(max(0, len(m.Content)-maxParts))}
	for _, content := range m.Content[:min(len(m.Content), maxParts)] {
		runes := v1beta1.MaxDebugTextRunes
		if *room <= 0 {
			runes = oldTextRunes
		}
		part := redactPart(promptPart(content), runes, redactor)
		*room -= len(part.Text) + partCost
		out.Parts = append(out.Parts, part)
	}
	return out
}

// promptPart converts a part of a prompt, with its whole text. Of a file it has the size, or the URL.
func promptPart(content fantasy.MessagePart) v1beta1.DebugPart {
	switch c := content.(type) {
	case fantasy.TextPart:
		return v1beta1.DebugPart{Type: v1beta1.DebugText, Text: c.Text}
	case fantasy.ReasoningPart:
		return v1beta1.DebugPart{Type: v1beta1.DebugReasoning, Text: c.Text}
	case fantasy.FilePart:
		_, from, _ := prompt.URLOf(c)
		return v1beta1.DebugPart{Type: v1beta1.DebugFile, Text: from, Name: c.Filename, MediaType: c.MediaType,
			Bytes: int64(len(c.Data))}
	case fantasy.ToolCallPart:
		return v1beta1.DebugPart{Type: v1beta1.DebugToolCall, ID: c.ToolCallID, Name: c.ToolName, Text: c.Input}
	case fantasy.ToolResultPart:
		return resultPart(c.ToolCallID, c.Output)
	}
	return v1beta1.DebugPart{Type: v1beta1.DebugText}
}

func resultPart(id string, output fantasy.ToolResultOutputContent) v1beta1.DebugPart {
	part := v1beta1.DebugPart{Type: v1beta1.DebugToolResult, ID: id}
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

func recordTool(tool fantasy.Tool, room *int, redactor redact.Redactor) v1beta1.DebugTool {
	out := v1beta1.DebugTool{Name: bound(tool.GetName(), 256)}
	var schema any
	switch t := tool.(type) {
	case fantasy.FunctionTool:
		out.Description, schema = shorten(redactor.Text(t.Description), 1000), t.InputSchema
	case fantasy.ProviderDefinedTool:
		out.Description, schema = bound(t.ID, 1000), t.Args
	default:
		return out
	}
	out.InputSchema = "[left out: the tools are too large]"
	if *room > 0 {
		out.InputSchema = shorten(redactor.Text(toJSON(schema)), v1beta1.MaxDebugTextRunes)
		*room -= len(out.InputSchema)
	}
	return out
}

// maxReplyParts and maxWarnings are limits of the resource.
const maxReplyParts, maxWarnings = 256, 32

// recordReply returns the reply to a call without secrets, and within the limits of the resource.
func recordReply(c *ModelCall, redactor redact.Redactor) *v1beta1.DebugResponse {
	out := &v1beta1.DebugResponse{FinishReason: bound(c.Content.FinishReason, 64), Usage: c.Content.Usage}
	room := v1beta1.MaxDebugReplyBytes
	for i := range c.Content.Parts[:min(len(c.Content.Parts), maxReplyParts)] {
		part := replyPart(&c.Content.Parts[i])
		text := part.Text
		part.Text = clip.Bytes(text, room)
		room -= len(part.Text)
		if part.Text != text {
			part.Text = cutText(&part)
		}
		out.Parts = append(out.Parts, redactPart(part, v1beta1.MaxDebugReplyBytes, redactor))
	}
	for _, kind := range slices.Sorted(maps.Keys(c.partCounts)) {
		out.PartCounts = append(out.PartCounts, v1beta1.DebugPartCount{Type: string(kind), Count: c.partCounts[kind]})
	}
	for _, w := range c.warnings[:min(len(c.warnings), maxWarnings)] {
		out.Warnings = append(out.Warnings, shorten(redactor.Text(warningText(w)), 1000))
	}
	return out
}

// replyPart converts a part of a reply, with its whole text.
func replyPart(p *v1beta1.MessagePart) v1beta1.DebugPart {
	switch {
	case p.ToolCall != nil:
		return v1beta1.DebugPart{Type: v1beta1.DebugToolCall, ID: p.ToolCall.ID, Name: p.ToolCall.Name,
			Text: p.ToolCall.Input}
	case p.ToolResult != nil:
		return v1beta1.DebugPart{Type: v1beta1.DebugToolResult, ID: p.ToolResult.ID, Name: p.ToolResult.Name,
			Text: p.ToolResult.Output}
	case p.Source != nil:
		return v1beta1.DebugPart{Type: v1beta1.DebugSource, ID: p.Source.ID, Name: p.Source.Title, Text: p.Source.URL}
	case p.Type == v1beta1.PartReasoning:
		return v1beta1.DebugPart{Type: v1beta1.DebugReasoning, Text: *p.Text}
	}
	return v1beta1.DebugPart{Type: v1beta1.DebugText, Text: *p.Text}
}

// cutText marks the text of a cut part. Cut JSON cannot be parsed, so no secret in it would be found.
func cutText(part *v1beta1.DebugPart) string {
	if trimmed := strings.TrimSpace(part.Text); part.Type == v1beta1.DebugToolCall || strings.HasPrefix(trimmed, "{") ||
		strings.HasPrefix(trimmed, "[") {
		return "[left out: too long]"
	}
	return part.Text + " [cut]"
}

func warningText(w fantasy.CallWarning) string {
	words := []string{string(w.Type), w.Setting, w.Details, w.Message}
	if w.Tool != nil {
		words = append(words, w.Tool.GetName())
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ": ")
}

// redactPart returns the part without secrets, with at most so many characters of its text.
func redactPart(part v1beta1.DebugPart, runes int, redactor redact.Redactor) v1beta1.DebugPart {
	redactText := redactor.Text
	if part.Text != "" && (part.Type == v1beta1.DebugSource || part.Type == v1beta1.DebugFile) {
		redactText = redactor.URL
	}
	part.Text = shorten(redactText(part.Text), runes)
	part.ID, part.Name = bound(redactor.Text(part.ID), 256), bound(redactor.Text(part.Name), 256)
	part.MediaType = bound(part.MediaType, 256)
	return part
}

// shorten cuts a text to so many characters, and reports the original number.
func shorten(text string, runes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	kept := clip.Runes(text, runes)
	if len(kept) == len(text) {
		return text
	}
	return kept + fmt.Sprintf(" [cut: %d characters in all]", utf8.RuneCountInString(text))
}

// bound cuts a name to so many characters.
func bound(name string, runes int) string {
	return clip.Ellipsis(strings.ToValidUTF8(name, "\uFFFD"), runes)
}
