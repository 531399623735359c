// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import "charm.land/fantasy"

const (
	// before replaces a missing first User message.
	before = "(The beginning of this conversation is not shown.)"
	// goOn replaces a missing last User message.
	goOn = "Go on."
	// invalidOutput follows an answer that does not match the schema.
	invalidOutput = "(Your answer does not match the JSON Schema: %s. Answer again with the JSON alone.)"
	// stopped replaces a missing reply.
	stopped = "(The reply ended here.)"
)

// shape puts a User message first, and a User or Tool message last, or a paused reply. It joins messages of one role
// where the provider requires it.
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

// replyBetween puts a reply between results and a User message.
func replyBetween(messages []fantasy.Message) (out []fantasy.Message) {
	for _, m := range messages {
		if n := len(out); n > 0 && out[n-1].Role == fantasy.MessageRoleTool && m.Role == fantasy.MessageRoleUser {
			out = append(out, message(fantasy.MessageRoleAssistant, fantasy.TextPart{Text: stopped}))
		}
		out = append(out, m)
	}
	return out
}

// alternate joins adjacent messages of one role, and adjacent texts: servers that require alternating roles often take
// only a plain text.
func alternate(messages []fantasy.Message) (out []fantasy.Message) {
	for _, m := range messages {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content = append(out[n-1].Content, m.Content...)
		} else {
			out = append(out, m)
		}
	}
	for i := range out {
		if out[i].Role != fantasy.MessageRoleTool {
			out[i].Content = joinAdjacentTexts(out[i].Content)
		}
	}
	return out
}

func joinAdjacentTexts(content []fantasy.MessagePart) (out []fantasy.MessagePart) {
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

// joinTexts joins all texts at the place of the first. In some protocols a message has one text, and all but the last
// would be lost.
func joinTexts(content []fantasy.MessagePart) (out []fantasy.MessagePart) {
	first := -1
	for _, part := range content {
		text, ok := part.(fantasy.TextPart)
		switch {
		case ok && first >= 0:
			out[first] = fantasy.TextPart{Text: out[first].(fantasy.TextPart).Text + "\n" + text.Text}
			continue
		case ok:
			first = len(out)
		}
		out = append(out, part)
	}
	return out
}
