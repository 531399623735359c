// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestMessageHasAllTermsInAnyCase(t *testing.T) {
	m := &v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Parts: []v1beta1.MessagePart{
		{Type: v1beta1.PartText, Text: new("İstanbul: the Node\n  is NOT ready, GRÖẞE 3")},
		{Type: v1beta1.PartReasoning, Text: new("secretly")},
		{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{Name: "read_file", Input: `{"path":"/etc/hosts"}`}},
		{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{Output: "127.0.0.1"}},
	}}}
	for query, found := range map[string]bool{
		"node": true, "ready node": true, `"node is not"`: true, `"is node"`: false, "gröẞe": true, "/etc/hosts": true,
		"127.0.0.1 read_file": true, "node absent": false, "secretly": false, `"node`: true,
	} {
		q, err := Parse(query)
		check.OK(t, err)
		if _, got := q.Find(m); got != found {
			t.Errorf("%s: found %t", query, got)
		}
	}
	m.Status.State = v1beta1.MessageSuperseded
	q, err := Parse("node")
	check.OK(t, err)
	if _, found := q.Find(m); found {
		t.Error("a superseded message is found")
	}
}

func TestQueryNeedsAWord(t *testing.T) {
	for _, query := range []string{"", " ", `""`, `" "`} {
		if _, err := Parse(query); err == nil {
			t.Errorf("%q is a query", query)
		}
	}
}

func TestExcerptIsAroundTheFirstTerm(t *testing.T) {
	q, err := Parse("needle")
	check.OK(t, err)
	for text, want := range map[string]string{
		"a Needle":                          "a Needle",
		strings.Repeat("İ", 50) + "needle":  "…" + strings.Repeat("İ", 40) + "needle",
		"needle" + strings.Repeat("é", 200): "needle" + strings.Repeat("é", 154) + "…",
	} {
		got, _ := q.Find(&v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Content: text}})
		check.Equal(t, "excerpt", want, got)
	}
}
