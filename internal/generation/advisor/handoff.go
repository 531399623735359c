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
	// maxMessages is how many messages of the conversation the advisor reads at most.
	maxMessages = 20
	// maxBytes is the size of all of them together, as JSON.
	maxBytes = 12_000
	// maxMessageBytes is the length of one: the result of a tool can be many times as long as what came before it.
	maxMessageBytes = 4_000
)

const (
	// notShown stands where what is left of the conversation does not begin with a user: providers want one first.
	notShown = "(The beginning of this conversation is not shown.)"
	// asks stands before the question.
	asks = "--- The agent asks you, its advisor:\n\n"
)

// Handoff is the prompt for the advisor, made of the prompt that the asking model had: its system messages, the last
// messages of the conversation, and the question. Everything is text, and roles alternate: the advisor's provider may
// be another one, which takes neither this one's calls and signatures nor calls of tools that it is not offered.
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
	said := []fantasy.Message{textMessage(fantasy.MessageRoleSystem, strings.Join(append(system, instructions), "\n\n"))}
	for _, m := range excerpt(conversation) {
		if len(said) == 1 && m.Role != fantasy.MessageRoleUser {
			said = append(said, textMessage(fantasy.MessageRoleUser, notShown))
		}
		said = appendText(said, m.Role, textOf(m))
	}
	return appendText(said, fantasy.MessageRoleUser, asks+question)
}

// excerpt is the end of a conversation, as far as it fits, in plain texts. Results whose calls do not fit are left out.
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
	var said []fantasy.Message
	for _, m := range conversation {
		if m = plainMessage(m, names); textOf(m) != "" {
			said = append(said, m)
		}
	}
	return said
}

// callNames are the names of the tools that are called, by the ids of the calls.
func callNames(conversation []fantasy.Message) map[string]string {
	names := map[string]string{}
	for _, m := range conversation {
		for _, part := range m.Content {
			if call, ok := fantasy.AsMessagePart[fantasy.ToolCallPart](part); ok {
				names[call.ToolCallID] = call.ToolName
			}
		}
	}
	return names
}

// plainMessage is the message as a text of a user or of the agent.
func plainMessage(m fantasy.Message, names map[string]string) fantasy.Message {
	role := fantasy.MessageRoleUser
	if m.Role == fantasy.MessageRoleAssistant {
		role = m.Role
	}
	return textMessage(role, tools.Truncate(plain(m, names), maxMessageBytes))
}

// plain is what the message says. Reasoning is left out: some providers forbid to show it to another model.
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
	switch part.GetType() {
	case fantasy.ContentTypeText:
		text, _ := fantasy.AsMessagePart[fantasy.TextPart](part)
		return text.Text
	case fantasy.ContentTypeToolCall:
		call, _ := fantasy.AsMessagePart[fantasy.ToolCallPart](part)
		return fmt.Sprintf("[Called tool %s with %s]", call.ToolName, call.Input)
	case fantasy.ContentTypeToolResult:
		result, _ := fantasy.AsMessagePart[fantasy.ToolResultPart](part)
		return plainResult(result, names)
	case fantasy.ContentTypeFile:
		file, _ := fantasy.AsMessagePart[fantasy.FilePart](part)
		return strings.TrimSpace("[A file, not shown: "+file.Filename+" "+file.MediaType) + "]"
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
	if err != nil { // A message of one text always is JSON.
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
