// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
)

const (
	// maxAsked is how many characters of a conversation a model is shown: enough to know what it is about.
	maxAsked = 6000
	// maxNewest is how many of them are of one message of a conversation that goes on:
	// one long answer must not hide the others.
	maxNewest = 1000
	// newestTurns is how many turns of such a conversation it is shown, besides its beginning.
	newestTurns = 3
)

// Of is what the first User message of a history that is meant for people says;
// empty if there is none, or it has no text.
func Of(messages []v1alpha1.ChatMessage) string {
	if i := slices.IndexFunc(messages, Asks); i >= 0 {
		return Text(&messages[i].Spec)
	}
	return ""
}

// Questions is the number of User messages of a history that are meant for people.
func Questions(messages []v1alpha1.ChatMessage) (n int) {
	for i := range messages {
		if Asks(messages[i]) {
			n++
		}
	}
	return n
}

// Asks reports whether a message is a User's that people are to see: captions are for them.
func Asks(m v1alpha1.ChatMessage) bool {
	return m.Spec.Role == v1alpha1.RoleUser && m.Spec.Visibility != v1alpha1.VisibleToModel
}

// Shown is what a message says, as far as people are to see it. A summary stands for what they have seen.
func Shown(spec *v1alpha1.ChatMessageSpec) string {
	if spec.Role == v1alpha1.RoleUser && spec.Visibility == v1alpha1.VisibleToModel {
		return ""
	}
	return Text(spec)
}

// Text is what a message says, in lines: unlike v1alpha1.ChatMessageSpec.Text it keeps texts apart that a model shall
// not read as one.
func Text(spec *v1alpha1.ChatMessageSpec) string {
	said := []string{spec.Content}
	for i := range spec.Parts {
		if part := &spec.Parts[i]; part.Type == v1alpha1.PartText && part.Text != nil {
			said = append(said, *part.Text)
		}
	}
	for i := range spec.History {
		said = append(said, spec.History[i].Content)
	}
	return strings.TrimSpace(strings.Join(said, "\n"))
}

// Beginning shows a model how a conversation begins.
func Beginning(text string) string { return tagged("message", text, maxAsked) }

// Exchange shows a model what was asked, if that is known, and what came of it.
func Exchange(question, answer string) string {
	if question == "" {
		return tagged("reply", answer, maxAsked/2)
	}
	return tagged("message", question, maxAsked/2) + "\n" + tagged("reply", answer, maxAsked/2)
}

// Conversation shows a model how a conversation began, be it by a summary, and its newest turns.
func Conversation(messages []v1alpha1.ChatMessage) string {
	first := max(0, slices.IndexFunc(messages, func(m v1alpha1.ChatMessage) bool { return Shown(&m.Spec) != "" }))
	newest, turns := len(messages), 0
	for newest > first+1 && turns < newestTurns {
		newest--
		if Asks(messages[newest]) {
			turns++
		}
	}
	var shown []string
	left := maxAsked
	add := func(m *v1alpha1.ChatMessage, most int) {
		if text := Shown(&m.Spec); text != "" && m.Spec.Role != v1alpha1.RoleTool {
			shown = append(shown, tagged(tags[m.Spec.Role], text, min(most, left)))
			left -= min(most, left, len([]rune(text)))
		}
	}
	// The newest come first while there is room, since they say what the conversation has come to.
	for i := len(messages) - 1; i >= newest && left > maxNewest; i-- {
		add(&messages[i], maxNewest)
	}
	if len(messages) > 0 && newest > first {
		add(&messages[first], left)
	}
	slices.Reverse(shown)
	return strings.Join(shown, "\n")
}

var tags = map[v1alpha1.MessageRole]string{v1alpha1.RoleUser: "message", v1alpha1.RoleAssistant: "reply",
	v1alpha1.RoleSystem: "summary"}

// tagged is the beginning of a text, in a tag.
func tagged(tag, text string, runes int) string {
	return "<" + tag + ">\n" + clip.Runes(text, runes) + "\n</" + tag + ">"
}
