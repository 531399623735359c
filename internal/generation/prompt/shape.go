// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"strings"

	"charm.land/fantasy"
)

const (
	// before stands where the model does not see who spoke first.
	before = "(The beginning of this conversation is not shown.)"
	// goOn stands where nobody has said what to do next.
	goOn = "Go on."
	// invalidOutput goes after an answer that does not match the schema.
	invalidOutput = "(Your answer does not match the JSON Schema: %s. Answer again with the JSON alone.)"
	// stopped stands where a turn ended without a reply.
	stopped = "(The reply ended here.)"
)

// shape makes a user speak first, a user or results come last, and neighbours of one role one message where the
// provider wants that. A reply comes last if the provider has paused it.
func shape(messages []fantasy.Message, d Dialect, paused bool) []fantasy.Message {
	user := func(text string) fantasy.Message {
		return message(fantasy.MessageRoleUser, fantasy.TextPart{Text: text})
	}
	if len(messages) > 0 && messages[0].Role != fantasy.MessageRoleUser {
		messages = append([]fantasy.Message{user(before)}, messages...)
	}
	if n := len(messages); n == 0 || messages[n-1].Role == fantasy.MessageRoleAssistant && !paused {
		messages = append(messages, user(goOn))
	}
	if d.Alternate {
		messages = alternate(messages)
	}
	if d.ReplyBetween {
		messages = replyBetween(messages)
	}
	return messages
}

// replyBetween puts a reply between results and what a user says after them.
func replyBetween(messages []fantasy.Message) []fantasy.Message {
	var out []fantasy.Message
	for _, m := range messages {
		if n := len(out); n > 0 && out[n-1].Role == fantasy.MessageRoleTool && m.Role == fantasy.MessageRoleUser {
			out = append(out, message(fantasy.MessageRoleAssistant, fantasy.TextPart{Text: stopped}))
		}
		out = append(out, m)
	}
	return out
}

// alternate joins messages of one role that follow each other. Results stay apart from what a user says after them.
// Texts that follow each other become one: servers that want roles to alternate often take a plain text only.
func alternate(messages []fantasy.Message) []fantasy.Message {
	var out []fantasy.Message
	for _, m := range messages {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content = append(out[n-1].Content, m.Content...)
		} else {
			out = append(out, m)
		}
	}
	for i := range out {
		if out[i].Role != fantasy.MessageRoleTool {
			out[i].Content = joinNeighbours(out[i].Content)
		}
	}
	return out
}

func joinNeighbours(content []fantasy.MessagePart) []fantasy.MessagePart {
	var out []fantasy.MessagePart
	for _, part := range content {
		text, ok := part.(fantasy.TextPart)
		if n := len(out); ok && n > 0 {
			if last, ok := out[n-1].(fantasy.TextPart); ok {
				last.Text += "\n\n" + text.Text
				out[n-1] = last
				continue
			}
		}
		out = append(out, part)
	}
	return out
}

// joinTexts makes one text of all, at the place of the first. In some protocols a message has one text, and all but the
// last would be lost.
func joinTexts(content []fantasy.MessagePart) []fantasy.MessagePart {
	var texts []string
	first := -1
	var out []fantasy.MessagePart
	for _, part := range content {
		text, ok := part.(fantasy.TextPart)
		if !ok {
			out = append(out, part)
			continue
		}
		if texts = append(texts, text.Text); first < 0 {
			first = len(out)
			out = append(out, text)
		}
	}
	if len(texts) > 1 {
		out[first] = fantasy.TextPart{Text: strings.Join(texts, "\n")}
	}
	return out
}
