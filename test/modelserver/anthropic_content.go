// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxCacheMarks is how many parts of a request may carry cache_control.
const maxCacheMarks = 4

// validateContent holds what is demanded of the content of messages beside its pairing: texts say something, results'
// texts too, a reply does not end with thinking, and not too much is to be cached.
func (in anthropicRequest) validateContent() *apiError {
	marks := marksIn(in.System)
	for i, m := range *in.Messages {
		for _, b := range m.Content {
			if len(b.CacheControl) > 0 {
				marks++
			}
			if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
				return refuse("messages: text content blocks must contain non-whitespace text")
			}
			if b.Type == "tool_result" && b.hasEmptyText() {
				return refuse("messages: text content blocks must be non-empty")
			}
		}
		if n := len(m.Content); n > 0 && m.Role == "assistant" && slices.Contains([]string{"thinking", "redacted_thinking"},
			m.Content[n-1].Type) {
			return refuse("messages.%d: The final block in an assistant message cannot be `thinking`.", i)
		}
	}
	if marks > maxCacheMarks {
		return refuse("A maximum of %d blocks with cache_control may be provided. Found %d.", maxCacheMarks, marks)
	}
	return nil
}

// refuseURLs is what hosts say that take content alone.
func (in anthropicRequest) refuseURLs() *apiError {
	for i, m := range *in.Messages {
		for j, b := range m.Content {
			if b.Source != nil && b.Source.Type == "url" {
				return refuse("messages.%d.content.%d.%s.source.base64.data: URL sources are not supported", i, j, b.Type)
			}
		}
	}
	return nil
}

func (b anthropicBlock) hasEmptyText() bool {
	var blocks []anthropicBlock
	return json.Unmarshal(b.Content, &blocks) == nil &&
		slices.ContainsFunc(blocks, func(b anthropicBlock) bool { return b.Type == "text" && b.Text == "" })
}

func marksIn(system json.RawMessage) int {
	var blocks []anthropicBlock
	if json.Unmarshal(system, &blocks) != nil {
		return 0
	}
	return len(slices.DeleteFunc(blocks, func(b anthropicBlock) bool { return len(b.CacheControl) == 0 }))
}
