// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"slices"
	"strings"
)

// mergeTurns joins neighbours of the same role, as the provider does before it checks anything else.
func mergeTurns(messages []anthropicMessage) []anthropicMessage {
	var out []anthropicMessage
	for _, m := range messages {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content = slices.Concat(out[n-1].Content, m.Content)
			continue
		}
		out = append(out, m)
	}
	return out
}

// anthropicPairing holds that each message with tool_use blocks is followed by one that starts with exactly their
// results.
func anthropicPairing(messages []anthropicMessage) *apiError {
	var asked []string
	seen := map[string]bool{}
	for i, m := range messages {
		answered, err := m.results(i, asked)
		if err != nil {
			return err
		}
		if err := missingResults(asked, answered, i-1); err != nil {
			return err
		}
		asked = nil
		for j, b := range m.Content {
			if b.Type != "tool_use" {
				continue
			}
			if seen[b.ID] {
				return refuse("messages.%d.content.%d: `tool_use` ids must be unique", i, j)
			}
			seen[b.ID] = true
			asked = append(asked, b.ID)
		}
	}
	return missingResults(asked, nil, len(messages)-1)
}

// results are the ids that the message answers. Only results before any other block count as answers.
func (m anthropicMessage) results(i int, asked []string) ([]string, *apiError) {
	var answered []string
	leading := true
	for j, b := range m.Content {
		if b.Type != "tool_result" {
			leading = false
			continue
		}
		if !slices.Contains(asked, b.ToolUseID) {
			return nil, refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each "+
				"`tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
		}
		if slices.Contains(answered, b.ToolUseID) {
			return nil, refuse("messages.%d.content.%d: each tool_use must have a single result. Found multiple "+
				"`tool_result` blocks with id: %s", i, j, b.ToolUseID)
		}
		if leading {
			answered = append(answered, b.ToolUseID)
		}
	}
	return answered, nil
}

func missingResults(asked, answered []string, at int) *apiError {
	var missing []string
	for _, id := range asked {
		if !slices.Contains(answered, id) {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each "+
		"`tool_use` block must have a corresponding `tool_result` block in the next message.", at,
		strings.Join(missing, ", "))
}

func (m anthropicMessage) turns() []turn {
	kind := turnAssistant
	if m.Role == "user" {
		kind = turnUser
	}
	var out []turn
	for _, b := range m.Content {
		switch b.Type {
		case "tool_use":
			out = append(out, turn{kind: turnCall, id: b.ID, name: b.Name, text: string(b.Input)})
		case "tool_result":
			out = append(out, turn{kind: turnResult, id: b.ToolUseID, text: contentText(b.Content), failed: b.IsError})
		default:
			// The text blocks of one message are one text.
			if n := len(out); n > 0 && out[n-1].kind == kind {
				out[n-1].text += b.Text
				continue
			}
			out = append(out, turn{kind: kind, text: b.Text})
		}
	}
	return out
}
