// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func said(role v1beta1.MessageRole, content string, parts ...string) v1beta1.ChatMessage {
	m := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: role, Content: content}}
	for _, part := range parts {
		m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: &part})
	}
	return m
}

func TestATitleIsOfTheFirstQuestion(t *testing.T) {
	messages := []v1beta1.ChatMessage{said(v1beta1.RoleSystem, "", "summary"), said(v1beta1.RoleUser, "", "why", "so"),
		said(v1beta1.RoleAssistant, "", "because"), said(v1beta1.RoleUser, "and then")}
	check.Equal(t, "question, number", []any{"why\nso", 2}, []any{FirstQuestion(messages), Questions(messages)})
	check.Equal(t, "the text of nothing", "", FirstQuestion(nil))
}

// Titles and summaries are for people.
//
// Security (an author of messages): cannot have titles and summaries contain what was meant for the model alone.
func TestCaptionOmitsMessagesForTheModelAlone(t *testing.T) {
	hidden := said(v1beta1.RoleUser, "the hook's word")
	hidden.Spec.Visibility = v1beta1.VisibleToModel
	messages := []v1beta1.ChatMessage{hidden, said(v1beta1.RoleAssistant, "done"), said(v1beta1.RoleUser, "why")}
	check.Equal(t, "a title", []any{"why", 1}, []any{FirstQuestion(messages), Questions(messages)})
	check.Equal(t, "another title", "<reply>\ndone\n</reply>\n<message>\nwhy\n</message>", Conversation(messages))
	check.Equal(t, "a summary", "", Shown(&hidden.Spec))
	summary := said(v1beta1.RoleSystem, "what was said")
	summary.Spec.Visibility = v1beta1.VisibleToModel
	check.Equal(t, "of a summary", "what was said", Shown(&summary.Spec))
}

func TestTitleIsAskedForByTheMessagesBeginning(t *testing.T) {
	call := Title.Ask(fantasy.Call{MaxOutputTokens: new(int64(100)), TopK: new(int64(5))}, "",
		Beginning(strings.Repeat("長", 10_000)), false)
	text := call.Prompt[1].Content[0].(fantasy.TextPart).Text
	check.Equal(t, "number, valid, max output tokens, top k", []any{maxAsked, true, 100, 5},
		[]any{strings.Count(text, "長"), utf8.ValidString(text), *call.MaxOutputTokens, *call.TopK})
	plain := Title.Ask(fantasy.Call{MaxOutputTokens: new(int64(32000))}, "", "why", true)
	check.Equal(t, "tools, choice and tokens of a plain call", []any{0, true, Title.Tokens},
		[]any{len(plain.Tools), plain.ToolChoice == nil, *plain.MaxOutputTokens})
}

func TestPreambleOfTheNamespacePrecedesTheRequest(t *testing.T) {
	for _, plain := range []bool{true, false} {
		call := Title.Ask(fantasy.Call{}, "Be lawful.", "why", plain)
		check.Contains(t, "|"+call.Prompt[0].Content[0].(fantasy.TextPart).Text, "|Be lawful.\n\nWrite the title")
	}
}

// replied is a reply of the text and calls with the inputs.
func replied(text string, inputs ...string) (parts []v1beta1.MessagePart) {
	for _, input := range inputs {
		parts = append(parts, v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{Input: input}})
	}
	return append(parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: &text})
}

func TestTitleIsReadFromTheCallOrText(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		inputs []string
		want   string
	}{
		"a call":                 {"Sure!", []string{`{"title":"Stuck pods"}`}, "Stuck pods"},
		"text":                   {"Stuck pods.", nil, "Stuck pods"},
		"half a call":            {"", []string{`{"title":"Stu`}, ""},
		"a call without a title": {"Stuck pods", []string{`{}`}, "Stuck pods"},
		"nothing":                {"", nil, ""},
	} {
		check.Equal(t, name, c.want, Title.Read(replied(c.text, c.inputs...)))
	}
}

func TestTurnSummaryIsShortAndOfItsTool(t *testing.T) {
	call := TurnSummary.Ask(fantasy.Call{MaxOutputTokens: new(int64(32000))}, "", Exchange("why", "because"), false)
	check.Equal(t, "the call", []any{64, "set_summary"}, []any{*call.MaxOutputTokens, call.Tools[0].GetName()})
	check.Equal(t, "the text", "<message>\nwhy\n</message>\n<reply>\nbecause\n</reply>",
		call.Prompt[1].Content[0].(fantasy.TextPart).Text)
	check.Equal(t, "the caption", "Found the cause of it",
		TurnSummary.Read(replied("", `{"summary":"Summary: Found the cause of it all."}`)))
}

func TestConversationIsShownByBeginningAndNewestTurns(t *testing.T) {
	var messages []v1beta1.ChatMessage
	for i := range 6 {
		messages = append(messages, said(v1beta1.RoleUser, "question "+string(rune('0'+i))),
			said(v1beta1.RoleTool, "", "output"), said(v1beta1.RoleAssistant, "", "answer "+string(rune('0'+i))))
	}
	want := "<message>\nquestion 0\n</message>"
	for _, n := range []string{"3", "4", "5"} {
		want += "\n<message>\nquestion " + n + "\n</message>\n<reply>\nanswer " + n + "\n</reply>"
	}
	check.Equal(t, "the conversation", want, Conversation(messages))
	compacted := []v1beta1.ChatMessage{said(v1beta1.RoleSystem, "", "what was said"), said(v1beta1.RoleUser, "and now")}
	check.Equal(t, "the conversation", "<summary>\nwhat was said\n</summary>\n<message>\nand now\n</message>",
		Conversation(compacted))
	check.Equal(t, "the conversation", "<message>\nquestion 0\n</message>", Conversation(messages[:1]))
	check.Equal(t, "the conversation", "", Conversation(nil))
}

func TestALongConversationIsShownWithinBounds(t *testing.T) {
	long := strings.Repeat("長", 10_000)
	var messages []v1beta1.ChatMessage
	for range 4 {
		messages = append(messages, said(v1beta1.RoleUser, long), said(v1beta1.RoleAssistant, "", long))
	}
	got := Conversation(messages)
	check.Equal(t, "characters, valid, begins with the first, ends with the newest", []any{maxAsked, true, true, true},
		[]any{strings.Count(got, "長"), utf8.ValidString(got), strings.HasPrefix(got, "<message>\n長"),
			strings.HasSuffix(got, strings.Repeat("長", maxNewest)+"\n</reply>")})
}

func TestDecorationOfATitleIsTakenOff(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"a title":                {"Pods stuck in ContainerCreating", "Pods stuck in ContainerCreating"},
		"quotes":                 {`"Stuck pods"`, "Stuck pods"},
		"other quotes":           {"„Hängende Pods“", "Hängende Pods"},
		"quotes and a full stop": {"“Stuck pods.”", "Stuck pods"},
		"quotes within stay":     {`The "latest" tag considered harmful`, `The "latest" tag considered harmful`},
		"an apostrophe stays":    {"Why doesn't it start", "Why doesn't it start"},
		"a question mark stays":  {"Why stuck?", "Why stuck?"},
		"a label":                {"Title: Stuck pods", "Stuck pods"},
		"a label in bold":        {"**Title:** Stuck pods", "Stuck pods"},
		"a heading":              {"# Stuck pods\n\nThey are stuck because", "Stuck pods"},
		"bold":                   {"**Stuck pods**", "Stuck pods"},
		"empty lines before":     {"\n\n  Stuck pods\n", "Stuck pods"},
		"thoughts":               {"<think>The user\nasks</think>\n\nStuck pods", "Stuck pods"},
		"thoughts alone":         {"<think>The user asks about", ""},
		"an object":              {`{"title": "Stuck pods"}`, "Stuck pods"},
		"an object in a fence":   {"```json\n{\"title\": \"Stuck pods\"}\n```", "Stuck pods"},
		"half an object":         {`{"title": "Stuck`, ""},
		"another object":         {`{"name": "Stuck"}`, ""},
		"an object in an object": {`{"title": "{\"title\": \"x\"}"}`, ""},
		"more than eight words": {"one two three four five six seven eight nine ten",
			"one two three four five six seven eight"},
		"more than eighty characters":       {strings.Repeat("ä", 100), strings.Repeat("ä", 79) + "…"},
		"control characters":                {"Stuck\x1b[0m pods\u202e", "Stuck [0m pods"},
		"nothing":                           {"", ""},
		"nothing but marks":                 {`"**"`, ""},
		"a colon at the end":                {"Stuck pods:", "Stuck pods"},
		"something that is no UTF-8 at all": {"Stuck \xff\xfe pods", "Stuck pods"},
	} {
		check.Equal(t, name, c.want, Title.Clean(c.answer))
	}
}

func FuzzATitleCanBeShownAnywhere(f *testing.F) {
	for _, seed := range []string{"Stuck pods", `{"title":"x"}`, "<think>", "# \"a\"", "\x00\u202e",
		strings.Repeat("w ", 90)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range []Form{Title, TurnSummary} {
			caption := form.Clean(text)
			words, runes := len(strings.Fields(caption)), utf8.RuneCountInString(caption)
			check.Equal(t, "valid, one line, too long", []any{true, false, strings.TrimSpace(caption), false},
				[]any{utf8.ValidString(caption), strings.ContainsFunc(caption, unicode.IsControl), caption,
					words > form.Words || runes > form.Runes})
		}
	})
}
