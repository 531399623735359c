// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"encoding/json"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestLongMessagesAreShortenedBeforeAnyIsOmitted(t *testing.T) {
	long := strings.Repeat("x", 32_000)
	messages := history("u:task a:first t:" + long + " a:second t:" + long + " t:" + long + " a:last")
	before := sizeOf(messages)
	got := Input(messages, 72_000)
	check.Equal(t, "messages", len(messages)+1, len(got))
	check.Equal(t, "fits", true, sizeOf(got) <= 72_000)
	check.Equal(t, "the history", before, sizeOf(messages))
	for _, i := range []int{2, 4, 5} {
		output := got[i].Spec.Parts[0].ToolResult.Output
		check.Contains(t, output, "xxx", "bytes left out")
		check.Equal(t, "a shortened result", true, len(output) > 8_000 && len(output) <= 9_000)
	}
}

func TestLongestPartsOfAMessageAreShortened(t *testing.T) {
	short, long := "short", strings.Repeat("x", 20_000)
	metadata := `{"signature":"s"}`
	m := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleAssistant, Parts: []v1beta1.MessagePart{
		{Type: v1beta1.PartReasoning, Text: &long, ProviderMetadata: metadata},
		{Type: v1beta1.PartText, Text: &short, ProviderMetadata: metadata},
		{Type: v1beta1.PartText, Text: &long, ProviderMetadata: metadata},
		{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{ID: "a", Name: "write", Input: `{"x":"` + long + `"}`}},
		{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "notes.txt", Data: long}},
	}}}
	got := Input([]v1beta1.ChatMessage{m}, 40_000)[0].Spec.Parts
	check.Equal(t, "reasoning", "Text [20000 bytes of reasoning are left out.]", string(got[0].Type)+" "+*got[0].Text)
	check.Equal(t, "a short part", m.Spec.Parts[1], got[1])
	check.Contains(t, *got[2].Text, "xxx", "bytes left out")
	check.Equal(t, "signature of a shortened text", "", got[2].ProviderMetadata)
	check.Equal(t, "call, arguments are JSON", []any{"a", "write", true},
		[]any{got[3].ToolCall.ID, got[3].ToolCall.Name, json.Valid([]byte(got[3].ToolCall.Input))})
	check.Equal(t, "a file", `[The file "notes.txt" is left out: it has 20000 bytes.]`, *got[4].Text)
	check.Equal(t, "the message itself", long, *m.Spec.Parts[0].Text)
}

func TestLevelLetsSmallSizesKeepTheirRoom(t *testing.T) {
	for _, c := range []struct {
		sizes       []int
		total, want int
	}{
		{[]int{1, 2, 3}, 6, 3}, {[]int{10, 1, 10}, 11, 5}, {[]int{9, 9, 9}, 9, 3}, {[]int{0, 100}, 7, 7}, {[]int{5}, 9, 5},
	} {
		check.Equal(t, c.sizes, c.want, level(c.sizes, c.total))
	}
}
