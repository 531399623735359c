// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/prior"
	"parley.dev/parley/test/kit/check"
)

var noon = metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))

// exportOf is a chat in which somebody has said something in every place.
func exportOf(said string) *Export {
	return &Export{
		header: prior.Header{Type: "chat", Namespace: "ns", Name: "triage", UID: "u", CreatedAt: noon, Title: said,
			SubChats: []string{"triage-a", "triage-b"}, Messages: 2, Usage: v1beta1.TokenUsage{TotalTokens: 7},
			Cost:  []v1beta1.Cost{{Currency: "EUR", MicroUnits: 1_230_000}},
			Error: &stream.Error{Reason: v1beta1.ErrorOverloaded, Message: said}},
		entries: []prior.Entry{
			{Type: "message", Message: stream.Message{Name: "q", UID: "q", Role: v1beta1.RoleUser, Content: said,
				CreatedBy: said, EditedBy: "ben", CreatedAt: noon,
				History: []v1beta1.PriorMessage{{Role: v1beta1.RoleAssistant, Content: said}}}},
			{Type: "note", Index: 1, Message: stream.Message{Name: "n", UID: "n", Role: v1beta1.RoleUser, Content: said,
				CreatedAt: noon, Visibility: v1beta1.VisibleToUsers}},
			{Type: "message", Index: 1, Message: stream.Message{Name: "a", UID: "a", Role: v1beta1.RoleAssistant,
				CreatedAt: noon, Model: &v1beta1.ModelIdentity{Name: said}, Usage: &v1beta1.TokenUsage{TotalTokens: 7},
				Cost: &v1beta1.Cost{Currency: "EUR", MicroUnits: 1_230_000}, Warnings: []string{said},
				Parts: []v1beta1.MessagePart{
					{Type: v1beta1.PartReasoning, Text: &said}, {Type: v1beta1.PartText, Text: &said},
					{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{ID: "1", Name: said, Input: said}},
					{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{ID: "1", Output: said, IsError: true}},
					{Type: v1beta1.PartSource, Source: &v1beta1.Source{Title: said, URL: said}},
					{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: said, MediaType: "text/plain", Data: "aGk="}},
				}}},
		},
	}
}

func TestAnExportIsReadByPeople(t *testing.T) {
	e := exportOf("It is down.")
	e.entries = e.entries[:2]
	e.entries[0].History, e.entries[0].CreatedBy = nil, "anna"
	want := "# It is down.\n\n" +
		"Chat triage in namespace ns, created 2026-11-23T12:00:00Z.\n\n" +
		"Its sub-chats are triage-a, triage-b.\n\n" +
		"2 messages, 7 tokens, 1.23 EUR.\n\n" +
		"## 1. User, anna, changed by ben, 2026-11-23T12:00:00Z\n\n" +
		"```markdown\nIt is down.\n```\n\n" +
		"## Note, 2026-11-23T12:00:00Z\n\n" +
		"```markdown\nIt is down.\n```\n\n" +
		"**The last turn failed: Overloaded.**\n\n" +
		"```\nIt is down.\n```\n"
	check.Equal(t, "page", want, e.Markdown())
}

// outside is a page without its fenced blocks, as a reader of Markdown finds them.
func outside(t *testing.T, page string) string {
	t.Helper()
	var b strings.Builder
	fence, opens := "", regexp.MustCompile("^(`{3,})[a-z]*$")
	for line := range strings.Lines(strings.ReplaceAll(page, "\r", "\n")) {
		line = strings.TrimRight(line, "\n")
		switch trimmed := strings.TrimRight(strings.TrimLeft(line, " "), " "); {
		case fence == "" && opens.MatchString(line):
			fence = opens.FindStringSubmatch(line)[1]
		case fence == "":
			b.WriteString(line + "\n")
		case strings.Trim(trimmed, "`") == "" && len(trimmed) >= len(fence):
			fence = ""
		}
	}
	check.Equal(t, "open fence", "", fence)
	return b.String()
}

func TestNobodyBreaksTheStructureOfAPage(t *testing.T) {
	t.Parallel()
	harmless := outside(t, func() string { e := exportOf("words"); return e.Markdown() }())
	for name, said := range map[string]string{
		"a heading":             "words\n# I am the title\n\n## 7. Assistant",
		"a fence":               "words\n```\n# out\n```",
		"a long fence":          "words\n``````````\n# out\n",
		"a fence behind a CR":   "words\r`````\r# out\r",
		"a fence of tildes":     "words\n~~~\n# out",
		"HTML that never ends":  "words <!-- <script>",
		"a link and a mention":  "words [me](http://evil.test) @all",
		"an image to be loaded": "words ![x](http://evil.test/?q=1)",
	} {
		t.Run(name, func(t *testing.T) {
			e := exportOf(said)
			got := outside(t, e.Markdown())
			check.Equal(t, "lines", strings.Count(harmless, "\n"), strings.Count(got, "\n"))
			for _, bad := range []string{"\n# I am", "\n# out", " <", "](", "@all", "`", "~~~"} {
				check.Lacks(t, strings.ReplaceAll(got, `\`+strings.TrimSpace(bad), ""), bad)
			}
		})
	}
}

func TestJSONExportHasAllFields(t *testing.T) {
	e := exportOf("It is \x1b[2J down.")
	var first, second strings.Builder
	check.OK(t, e.PrintLines(&first))
	if err := e.PrintLines(&second); err != nil || first.String() != second.String() {
		t.Errorf("it is printed in another way: %v", err)
	}
	got := &Export{}
	for i, line := range strings.Split(strings.TrimSuffix(first.String(), "\n"), "\n") {
		if i == 0 {
			check.OK(t, json.Unmarshal([]byte(line), &got.header))
			continue
		}
		var entry prior.Entry
		check.OK(t, json.Unmarshal([]byte(line), &entry))
		got.entries = append(got.entries, entry)
	}
	check.Equal(t, "export", e, got, cmp.AllowUnexported(Export{}))
}
