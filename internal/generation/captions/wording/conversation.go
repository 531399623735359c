// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

const (
	// maxAsked limits the characters of a conversation in a request.
	maxAsked = 6000
	// maxNewest limits the characters of one message after the first, so that one long answer does not hide the others.
	maxNewest = 1000
	// newestTurns is the number of turns in a request, in addition to the first message.
	newestTurns = 3
)

// FirstQuestion is the text of the first User message for people.
func FirstQuestion(messages []v1beta1.ChatMessage) string {
	if i := slices.IndexFunc(messages, Asks); i >= 0 {
		return Text(&messages[i].Spec)
	}
	return ""
}

// Questions is the number of User messages for people.
func Questions(messages []v1beta1.ChatMessage) (n int) {
	for i := range messages {
		if Asks(messages[i]) {
			n++
		}
	}
	return n
}

// Asks reports whether a message is a User message for people, who read the captions.
func Asks(m v1beta1.ChatMessage) bool {
	return m.Spec.Role == v1beta1.RoleUser && m.Spec.Visibility != v1beta1.VisibleToModel
}

// Shown is the text of a message that people can see. A summary replaces messages that they have seen.
func Shown(spec *v1beta1.ChatMessageSpec) string {
	if spec.Role == v1beta1.RoleUser && spec.Visibility == v1beta1.VisibleToModel {
		return ""
	}
	return Text(spec)
}

// Text is the text of a message. Unlike v1beta1.ChatMessageSpec.Text, it separates the texts by line breaks.
func Text(spec *v1beta1.ChatMessageSpec) string {
	texts := []string{spec.Content}
	for _, part := range spec.Parts {
		if part.Type == v1beta1.PartText && part.Text != nil {
			texts = append(texts, *part.Text)
		}
	}
	for _, prior := range spec.History {
		texts = append(texts, prior.Content)
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// Beginning is the request's text of a new conversation.
func Beginning(text string) string { return tagged("message", text, maxAsked) }

// Exchange is the request's text of a turn, whose question may be unknown.
func Exchange(question, answer string) string {
	if question == "" {
		return tagged("reply", answer, maxAsked/2)
	}
	return tagged("message", question, maxAsked/2) + "\n" + tagged("reply", answer, maxAsked/2)
}

// Conversation is the request's text of a conversation: its first message or summary, and its newest turns.
func Conversation(messages []v1beta1.ChatMessage) string {
	first := max(0, slices.IndexFunc(messages, func(m v1beta1.ChatMessage) bool { return Shown(&m.Spec) != "" }))
	newest, turns := len(messages), 0
	for newest > first+1 && turns < newestTurns {
		newest--
		if Asks(messages[newest]) {
			turns++
		}
	}
	var texts []string
	left := maxAsked
	add := func(m *v1beta1.ChatMessage, most int) {
		if text := Shown(&m.Spec); text != "" && m.Spec.Role != v1beta1.RoleTool {
			texts = append(texts, tagged(tags[m.Spec.Role], text, min(most, left)))
			left -= min(most, left, len([]rune(text)))
		}
	}
	// The newest messages are the most important.
	for i := len(messages) - 1; i >= newest && left > maxNewest; i-- {
		add(&messages[i], maxNewest)
	}
	if len(messages) > 0 && newest > first {
		add(&messages[first], left)
	}
	slices.Reverse(texts)
	return strings.Join(texts, "\n")
}

var tags = map[v1beta1.MessageRole]string{v1beta1.RoleUser: "message", v1beta1.RoleAssistant: "reply",
	v1beta1.RoleSystem: "summary"}

// tagged is the beginning of a text in a tag.
func tagged(tag, text string, runes int) string {
	return "<" + tag + ">\n" + clip.Runes(text, runes) + "\n</" + tag + ">"
}
