// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/observe/redact"
	"parley.dev/parley/internal/text/clip"
)

// maxReplyParts and maxWarnings are what the resource takes.
const maxReplyParts, maxWarnings = 256, 32

// recordReply is what is recorded of the reply to a call.
func recordReply(c *ModelCall, redactor redact.Redactor) *v1alpha1.DebugResponse {
	out := &v1alpha1.DebugResponse{FinishReason: bound(c.Content.FinishReason, 64), Usage: c.Content.Usage}
	room := v1alpha1.MaxDebugReplyBytes
	for i := range c.Content.Parts[:min(len(c.Content.Parts), maxReplyParts)] {
		part := replyPart(&c.Content.Parts[i])
		whole := len(part.Text) <= room
		kept := clip.Bytes(part.Text, room)
		room -= len(kept)
		if part.Text = kept; !whole {
			part.Text = cutText(&part)
		}
		out.Parts = append(out.Parts, redacted(part, v1alpha1.MaxDebugReplyBytes, redactor))
	}
	for _, of := range slices.Sorted(maps.Keys(c.partCounts)) {
		out.PartCounts = append(out.PartCounts, v1alpha1.DebugPartCount{Type: string(of), Count: c.partCounts[of]})
	}
	for _, w := range c.warnings[:min(len(c.warnings), maxWarnings)] {
		out.Warnings = append(out.Warnings, shortened(redactor.Text(warningText(w)), 1000))
	}
	return out
}

// replyPart is a part of a reply with all of its text.
func replyPart(p *v1alpha1.MessagePart) v1alpha1.DebugPart {
	switch {
	case p.ToolCall != nil:
		return v1alpha1.DebugPart{Type: v1alpha1.DebugToolCall, ID: p.ToolCall.ID, Name: p.ToolCall.Name,
			Text: p.ToolCall.Input}
	case p.ToolResult != nil:
		return v1alpha1.DebugPart{Type: v1alpha1.DebugToolResult, ID: p.ToolResult.ID, Name: p.ToolResult.Name,
			Text: p.ToolResult.Output}
	case p.Source != nil:
		return v1alpha1.DebugPart{Type: v1alpha1.DebugSource, ID: p.Source.ID, Name: p.Source.Title, Text: p.Source.URL}
	case p.Type == v1alpha1.PartReasoning:
		return v1alpha1.DebugPart{Type: v1alpha1.DebugReasoning, Text: *p.Text}
	}
	return v1alpha1.DebugPart{Type: v1alpha1.DebugText, Text: *p.Text}
}

// cutText is the text of a part that was cut. JSON that was cut is no JSON, so that no secret in it would be found.
func cutText(part *v1alpha1.DebugPart) string {
	if trimmed := strings.TrimSpace(part.Text); part.Type == v1alpha1.DebugToolCall || strings.HasPrefix(trimmed, "{") ||
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

// redacted is a part as it is recorded, with at most so many characters of its text.
func redacted(part v1alpha1.DebugPart, runes int, redactor redact.Redactor) v1alpha1.DebugPart {
	redactText := redactor.Text
	if part.Text != "" && (part.Type == v1alpha1.DebugSource || part.Type == v1alpha1.DebugFile) {
		redactText = redactor.URL
	}
	part.Text = shortened(redactText(part.Text), runes)
	part.ID, part.Name = bound(redactor.Text(part.ID), 256), bound(redactor.Text(part.Name), 256)
	part.MediaType = bound(part.MediaType, 256)
	return part
}

// shortened is the beginning of a text, at most so many characters, and says how many there were.
func shortened(text string, runes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	kept := clip.Runes(text, runes)
	if len(kept) == len(text) {
		return text
	}
	return kept + fmt.Sprintf(" [cut: %d characters in all]", utf8.RuneCountInString(text))
}

// bound cuts a name, which is at most so many characters then.
func bound(name string, runes int) string {
	return clip.Ellipsis(strings.ToValidUTF8(name, "\uFFFD"), runes)
}
