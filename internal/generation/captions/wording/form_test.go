// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"strings"
	"testing"
	"unicode/utf8"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

func said(role v1alpha1.MessageRole, content string, parts ...string) v1alpha1.ChatMessage {
	m := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: role, Content: content}}
	for _, part := range parts {
		m.Spec.Parts = append(m.Spec.Parts, v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: &part})
	}
	return m
}

func TestATitleIsOfTheFirstQuestion(t *testing.T) {
	messages := []v1alpha1.ChatMessage{said(v1alpha1.RoleSystem, "", "summary"), said(v1alpha1.RoleUser, "", "why", "so"),
		said(v1alpha1.RoleAssistant, "", "because"), said(v1alpha1.RoleUser, "and then")}
	if got, n := Of(messages), Questions(messages); got != "why\nso" || n != 2 {
		t.Errorf("got %q of %d", got, n)
	}
	if got := Of(nil); got != "" {
		t.Errorf("got %q of nothing", got)
	}
}

// Titles and summaries are for people.
func TestACaptionSaysNothingOfAMessageForTheModelAlone(t *testing.T) {
	hidden := said(v1alpha1.RoleUser, "the hook's word")
	hidden.Spec.Visibility = v1alpha1.VisibleToModel
	messages := []v1alpha1.ChatMessage{hidden, said(v1alpha1.RoleAssistant, "done"), said(v1alpha1.RoleUser, "why")}
	if got, n := Of(messages), Questions(messages); got != "why" || n != 1 {
		t.Errorf("a title is of %q, one of %d", got, n)
	}
	if got := Conversation(messages); got != "<reply>\ndone\n</reply>\n<message>\nwhy\n</message>" {
		t.Errorf("another title is of %s", got)
	}
	if got := Shown(&hidden.Spec); got != "" {
		t.Errorf("a summary is of %q", got)
	}
	summary := said(v1alpha1.RoleSystem, "what was said")
	summary.Spec.Visibility = v1alpha1.VisibleToModel
	if got := Shown(&summary.Spec); got != "what was said" {
		t.Errorf("of a summary %q is shown", got)
	}
}

func TestAModelIsShownTheBeginningOfTheMessageAndMaySayLittle(t *testing.T) {
	call := Title.Ask(fantasy.Call{MaxOutputTokens: new(int64(100)), TopK: new(int64(5))}, "",
		Beginning(strings.Repeat("長", 10_000)), false)
	text := call.Prompt[1].Content[0].(fantasy.TextPart).Text
	if n := strings.Count(text, "長"); n != maxAsked || !utf8.ValidString(text) || *call.MaxOutputTokens != 100 ||
		*call.TopK != 5 {
		t.Errorf("%d characters are shown, %d tokens allowed", n, *call.MaxOutputTokens)
	}
	if plain := Title.Ask(fantasy.Call{MaxOutputTokens: new(int64(32000))}, "", "why", true); len(plain.Tools) != 0 ||
		plain.ToolChoice != nil || *plain.MaxOutputTokens != Title.Tokens {
		t.Errorf("a plain call is %+v", plain)
	}
}

func TestThePreambleOfTheNamespaceStandsBeforeWhatIsAskedFor(t *testing.T) {
	for _, plain := range []bool{true, false} {
		call := Title.Ask(fantasy.Call{}, "Be lawful.", "why", plain)
		if text := call.Prompt[0].Content[0].(fantasy.TextPart).Text; !strings.HasPrefix(text,
			"Be lawful.\n\nWrite the title") {
			t.Errorf("the model is told %s", text)
		}
	}
}

// replied is a reply of the text and calls with the inputs.
func replied(text string, inputs ...string) (parts []v1alpha1.MessagePart) {
	for _, input := range inputs {
		parts = append(parts, v1alpha1.MessagePart{Type: v1alpha1.PartToolCall, ToolCall: &v1alpha1.ToolCall{Input: input}})
	}
	return append(parts, v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: &text})
}

func TestATitleIsReadFromTheCallOrElseFromTheText(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
			if got := Title.Read(replied(c.text, c.inputs...)); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestATurnSummaryIsAskedForInFewTokensAndReadFromItsOwnTool(t *testing.T) {
	call := TurnSummary.Ask(fantasy.Call{MaxOutputTokens: new(int64(32000))}, "", Exchange("why", "because"), false)
	if *call.MaxOutputTokens != 64 || call.Tools[0].GetName() != "set_summary" {
		t.Errorf("the call is %+v", call)
	}
	if text := call.Prompt[1].Content[0].(fantasy.TextPart).
		Text; text != "<message>\nwhy\n</message>\n<reply>\nbecause\n</reply>" {
		t.Errorf("the model is shown %q", text)
	}
	if got := TurnSummary.Read(replied("", `{"summary":"Summary: Found the cause of it all."}`)); got != "Found the cause of it" {
		t.Errorf("got %q", got)
	}
}

func TestAConversationIsShownByItsBeginningAndItsNewestTurns(t *testing.T) {
	var messages []v1alpha1.ChatMessage
	for i := range 6 {
		messages = append(messages, said(v1alpha1.RoleUser, "question "+string(rune('0'+i))),
			said(v1alpha1.RoleTool, "", "output"), said(v1alpha1.RoleAssistant, "", "answer "+string(rune('0'+i))))
	}
	want := "<message>\nquestion 0\n</message>"
	for _, n := range []string{"3", "4", "5"} {
		want += "\n<message>\nquestion " + n + "\n</message>\n<reply>\nanswer " + n + "\n</reply>"
	}
	if got := Conversation(messages); got != want {
		t.Errorf("got %s", got)
	}
	compacted := []v1alpha1.ChatMessage{said(v1alpha1.RoleSystem, "", "what was said"), said(v1alpha1.RoleUser, "and now")}
	if got := Conversation(compacted); got != "<summary>\nwhat was said\n</summary>\n<message>\nand now\n</message>" {
		t.Errorf("got %s", got)
	}
	if got := Conversation(messages[:1]); got != "<message>\nquestion 0\n</message>" {
		t.Errorf("got %s", got)
	}
	if got := Conversation(nil); got != "" {
		t.Errorf("got %q of nothing", got)
	}
}

func TestALongConversationIsShownWithinBounds(t *testing.T) {
	long := strings.Repeat("長", 10_000)
	var messages []v1alpha1.ChatMessage
	for range 4 {
		messages = append(messages, said(v1alpha1.RoleUser, long), said(v1alpha1.RoleAssistant, "", long))
	}
	got := Conversation(messages)
	if n := strings.Count(got, "長"); n != maxAsked || !utf8.ValidString(got) || !strings.HasPrefix(got, "<message>\n長") ||
		!strings.HasSuffix(got, strings.Repeat("長", maxNewest)+"\n</reply>") {
		t.Errorf("%d characters are shown", n)
	}
}
