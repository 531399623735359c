// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
)

const (
	// messagePart of the budget is the most that a message takes where not all fit: an eighth.
	messagePart = 8
	// leastMessage is how many bytes a message has in any case, if the budget has twice as many.
	leastMessage = 1024
)

// shortenAll shortens the messages that take more than their part of the budget. Otherwise a long one would displace
// all before it, or would itself be missing.
func shortenAll(messages []v1beta1.ChatMessage, budget int) []v1beta1.ChatMessage {
	most := max(budget/messagePart, min(leastMessage, budget/2))
	messages = slices.Clone(messages)
	for i := range messages {
		if m := &messages[i]; size(m) > most {
			shorten(m, most)
		}
	}
	return messages
}

// shorten shortens the longest parts of a message until it has about most bytes. It does not change the parts
// themselves: others use them.
func shorten(m *v1beta1.ChatMessage, most int) {
	sizes := []int{len(m.Spec.Content)}
	for i := range m.Spec.Parts {
		sizes = append(sizes, partSize(&m.Spec.Parts[i]))
	}
	longest := level(sizes, most)
	m.Spec.Content = tools.Truncate(m.Spec.Content, longest)
	m.Spec.Parts = slices.Clone(m.Spec.Parts)
	for i := range m.Spec.Parts {
		if n := partSize(&m.Spec.Parts[i]); n > longest {
			m.Spec.Parts[i] = shortened(&m.Spec.Parts[i], n, longest)
		}
	}
}

// level is the size at which sizes must be cut so that their sum is at most the total.
func level(sizes []int, total int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	for i, n := range sorted {
		if share := total / (len(sorted) - i); n > share {
			return share
		}
		total -= n
	}
	return sorted[len(sorted)-1]
}

// shortened is a part of n bytes with at most longest bytes, but for the note that says so. It has no metadata: what
// the provider signed is another text.
func shortened(p *v1beta1.MessagePart, n, longest int) v1beta1.MessagePart {
	switch {
	case p.ToolResult != nil:
		result := *p.ToolResult
		result.Output = tools.Truncate(result.Output, longest)
		return v1beta1.MessagePart{Type: p.Type, ToolResult: &result}
	case p.ToolCall != nil: // Half of a JSON object is none.
		call := *p.ToolCall
		call.Input = fmt.Sprintf(`{"omitted":"%d bytes"}`, len(call.Input))
		return v1beta1.MessagePart{Type: p.Type, ToolCall: &call}
	case p.File != nil:
		return textPart(fmt.Sprintf("[The file %q is left out: it has %d bytes.]", p.File.Name, n))
	case p.Type == v1beta1.PartReasoning:
		return textPart(fmt.Sprintf("[%d bytes of reasoning are left out.]", n))
	}
	return textPart(tools.Truncate(*p.Text, longest))
}

func textPart(text string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartText, Text: &text}
}
