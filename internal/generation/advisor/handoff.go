// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package advisor

import (
	"encoding/json"
	"fmt"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/internal/tools"
)

const (
	// maxMessages limits the messages of the conversation, maxMessageBytes each of them, and maxBytes their JSON.
	maxMessages     = 20
	maxMessageBytes = 4_000
	maxBytes        = 12_000

	// notShown replaces a missing first User message.
	notShown = "(The beginning of this conversation is not shown.)"
	// asks precedes the question.
	asks = "--- The agent asks you, its advisor:\n\n"
)

// Handoff is the prompt for the advisor: the system messages of the asking model's prompt, the end of its conversation,
// and the question. Everything is text, and roles alternate: the advisor may have another provider, which takes neither
// calls nor signatures of this one.
func Handoff(outer []fantasy.Message, question string) []fantasy.Message {
	var system []string
	var conversation []fantasy.Message
	for _, m := range outer {
		if m.Role == fantasy.MessageRoleSystem {
			system = append(system, plain(m, nil))
		} else {
			conversation = append(conversation, m)
		}
	}
	handoff := []fantasy.Message{
		textMessage(fantasy.MessageRoleSystem, strings.Join(append(system, instructions), "\n\n"))}
	for _, m := range excerpt(conversation) {
		if len(handoff) == 1 && m.Role != fantasy.MessageRoleUser {
			handoff = append(handoff, textMessage(fantasy.MessageRoleUser, notShown))
		}
		handoff = appendText(handoff, m.Role, textOf(m))
	}
	return appendText(handoff, fantasy.MessageRoleUser, asks+question)
}

// excerpt is the end of a conversation within the limits, in plain texts, without results whose calls do not fit.
func excerpt(conversation []fantasy.Message) []fantasy.Message {
	names := callNames(conversation)
	first, size := len(conversation), 0
	for first > 0 && len(conversation)-first < maxMessages {
		size += sizeOf(plainMessage(conversation[first-1], names))
		if size > maxBytes {
			break
		}
		first--
	}
	conversation = conversation[first:]
	names = callNames(conversation)
	var plain []fantasy.Message
	for _, m := range conversation {
		if m = plainMessage(m, names); textOf(m) != "" {
			plain = append(plain, m)
		}
	}
	return plain
}

// callNames are the names of the called tools, by the ids of the calls.
func callNames(conversation []fantasy.Message) map[string]string {
	names := map[string]string{}
	for _, m := range conversation {
		for _, part := range m.Content {
			if call, ok := part.(fantasy.ToolCallPart); ok {
				names[call.ToolCallID] = call.ToolName
			}
		}
	}
	return names
}

// plainMessage converts the message to a text of a user or of the agent.
func plainMessage(m fantasy.Message, names map[string]string) fantasy.Message {
	role := fantasy.MessageRoleUser
	if m.Role == fantasy.MessageRoleAssistant {
		role = m.Role
	}
	return textMessage(role, tools.Truncate(plain(m, names), maxMessageBytes))
}

// plain is the text of the message without reasoning, which some providers forbid to show to another model.
func plain(m fantasy.Message, names map[string]string) string {
	var texts []string
	for _, part := range m.Content {
		if text := plainPart(part, names); strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func plainPart(part fantasy.MessagePart, names map[string]string) string {
	switch part := part.(type) {
	case fantasy.TextPart:
		return part.Text
	case fantasy.ToolCallPart:
		return fmt.Sprintf("[Called tool %s with %s]", part.ToolName, part.Input)
	case fantasy.ToolResultPart:
		return plainResult(part, names)
	case fantasy.FilePart:
		return strings.TrimSpace("[A file, not shown: "+part.Filename+" "+part.MediaType) + "]"
	}
	return ""
}

func plainResult(result fantasy.ToolResultPart, names map[string]string) string {
	name, called := names[result.ToolCallID]
	if !called {
		return ""
	}
	switch out := result.Output.(type) {
	case fantasy.ToolResultOutputContentText:
		return fmt.Sprintf("[Result of tool %s: %s]", name, out.Text)
	case fantasy.ToolResultOutputContentError:
		return fmt.Sprintf("[Tool %s failed: %v]", name, out.Error)
	}
	return fmt.Sprintf("[Result of tool %s: not shown]", name)
}

// sizeOf is the length of the message as JSON.
func sizeOf(m fantasy.Message) int {
	raw, err := json.Marshal(m)
	if err != nil { // It cannot happen.
		return maxBytes + 1
	}
	return len(raw)
}

func textMessage(role fantasy.MessageRole, text string) fantasy.Message {
	return fantasy.Message{Role: role, Content: []fantasy.MessagePart{fantasy.TextPart{Text: text}}}
}

func textOf(m fantasy.Message) string { return m.Content[0].(fantasy.TextPart).Text }

// appendText adds a text, to the last message if that has the same role.
func appendText(messages []fantasy.Message, role fantasy.MessageRole, text string) []fantasy.Message {
	if n := len(messages); n > 0 && messages[n-1].Role == role {
		messages[n-1] = textMessage(role, textOf(messages[n-1])+"\n\n"+text)
		return messages
	}
	return append(messages, textMessage(role, text))
}
