// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// history is a history from words such as "u:hello a:hi s:summary t:result".
func history(words string) (messages []v1beta1.ChatMessage) {
	roles := map[string]v1beta1.MessageRole{"u": v1beta1.RoleUser, "a": v1beta1.RoleAssistant, "s": v1beta1.RoleSystem,
		"t": v1beta1.RoleTool}
	for i, word := range strings.Fields(words) {
		role, text, _ := strings.Cut(word, ":")
		m := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: roles[role]}}
		m.Name = fmt.Sprint(i)
		switch m.Spec.Role {
		case v1beta1.RoleUser:
			m.Spec.Content = text
		case v1beta1.RoleTool:
			m.Spec.Parts = []v1beta1.MessagePart{{ToolResult: &v1beta1.ToolResult{Output: text}}}
		default:
			m.Spec.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: &text}}
		}
		messages = append(messages, m)
	}
	return messages
}

// words is the reverse of history, without the fixed texts.
func words(messages []v1beta1.ChatMessage) string {
	var all []string
	for i := range messages {
		m := &messages[i]
		text := strings.TrimPrefix(m.Spec.Content, prefix)
		for _, p := range m.Spec.Parts {
			switch {
			case p.Text != nil:
				text += *p.Text
			case p.ToolResult != nil:
				text += p.ToolResult.Output
			}
		}
		if strings.HasPrefix(text, "[") {
			text = "..."
		}
		if text == request {
			text = "request"
		}
		all = append(all, strings.ToLower(string(m.Spec.Role[:1]))+":"+text)
	}
	return strings.Join(all, " ")
}

func TestNewestSummaryStandsFirstUnansweredMessagesStay(t *testing.T) {
	for name, c := range map[string]struct {
		history   string
		start     int
		want      string
		replies   int64
		compacted bool
	}{
		"no summary":                        {"u:1 a:2 u:3", 0, "u:1 a:2 u:3", 1, false},
		"a cleared context":                 {"u:1 a:2 u:3", 2, "u:3", 0, false},
		"a summary at the end":              {"u:1 a:2 s:sum", 2, "u:sum", 0, true},
		"a message was waiting":             {"u:1 a:2 u:3 s:sum", 2, "u:sum u:3", 0, true},
		"and was answered":                  {"u:1 a:2 u:3 s:sum a:4 u:5", 2, "u:sum u:3 a:4 u:5", 1, true},
		"in the middle of a turn":           {"u:1 a:2 t:3 s:sum a:4", 3, "u:sum a:4", 1, true},
		"a second summary":                  {"u:1 a:2 u:3 s:one a:4 u:5 s:two a:6", 5, "u:two u:5 a:6", 1, true},
		"everything before it was replaced": {"u:1 a:2 u:3 s:one a:4 s:two", 5, "u:two", 0, true},
		"beyond the end":                    {"u:1", 4, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			messages := history(c.history)
			visible := messages[min(c.start, len(messages)):]
			check.Equal(t, "the model sees", c.want, words(View(visible)))
			replies, compacted := Replies(visible)
			check.Equal(t, "replies, compacted", []any{c.replies, c.compacted}, []any{replies, compacted})
			check.Equal(t, "the history became", strings.ReplaceAll(c.history, prefix, ""), words(messages))
		})
	}
}

func TestUnansweredMessagesAreCountedFromTheEnd(t *testing.T) {
	for words, want := range map[string]int{"": 0, "u:1": 1, "u:1 a:2": 0, "u:1 a:2 u:3 u:4": 2, "u:1 a:2 t:3": 0,
		"u:1 s:2": 0} {
		check.Equal(t, words, want, Unanswered(history(words)))
	}
}

func TestInputBeyondBudgetIsCutInTheMiddle(t *testing.T) {
	const conversation = "u:aaaa a:bbbb t:cccc a:dddd u:eeee a:ffff t:gggg a:hhhh"
	for budget, want := range map[int]string{
		0:  conversation,
		32: conversation,
		31: "u:aaaa u:... t:cccc a:dddd u:eeee a:ffff t:gggg a:hhhh",
		16: "u:aaaa u:... a:ffff t:gggg a:hhhh",
		8:  "u:... t:gggg a:hhhh",
		3:  "u:...",
	} {
		check.Equal(t, budget, want+" u:request", words(Input(history(conversation), budget)))
	}
}

func TestInputKeepsItsBudgetAndItsOrder(t *testing.T) {
	messages := history("u:1 a:22 t:333 a:4444 t:55555 a:666666 u:7777777 a:88888888")
	for budget := 1; budget < 60; budget++ {
		kept := slices.DeleteFunc(bound(messages, budget), func(m v1beta1.ChatMessage) bool {
			return m.Name == "parley-compaction-gap"
		})
		check.Equal(t, budget, true, sizeOf(kept) <= budget && slices.IsSortedFunc(kept, func(a, b v1beta1.ChatMessage) int {
			return strings.Compare(a.Name, b.Name)
		}))
	}
}

func TestBudgetFollowsTheContextLimit(t *testing.T) {
	messages := history("u:aaaa a:bbbb")
	for _, c := range []struct {
		limit  int64
		source v1beta1.CompactionSource
		want   int
	}{
		{1000, v1beta1.CompactionManual, 2250}, {0, v1beta1.CompactionManual, 0}, {0, v1beta1.CompactionContextTooLong, 4},
	} {
		check.Equal(t, "the budget", c.want, Budget(c.limit, c.source, messages))
	}
}

func TestEveryKindOfContentHasASize(t *testing.T) {
	text, file := "1234", strings.Repeat("x", fileBytes+1)
	for name, spec := range map[string]v1beta1.ChatMessageSpec{
		"a content": {Content: text}, "a text": {Parts: []v1beta1.MessagePart{{Text: &text}}},
		"a call":   {Parts: []v1beta1.MessagePart{{ToolCall: &v1beta1.ToolCall{Name: "12", Input: "34"}}}},
		"a result": {Parts: []v1beta1.MessagePart{{ToolResult: &v1beta1.ToolResult{Output: text}}}},
	} {
		check.Equal(t, name, 4, size(&v1beta1.ChatMessage{Spec: spec}))
	}
	files := v1beta1.ChatMessageSpec{Parts: []v1beta1.MessagePart{{File: &v1beta1.MessageFile{Data: file}}}}
	check.Equal(t, "a file", fileBytes, size(&v1beta1.ChatMessage{Spec: files}))
}
