// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// withResult is a history whose one call was answered so, by a client or by Parley.
func withResult(output string, byClient bool) []v1alpha1.ChatMessage {
	call := v1alpha1.MessagePart{Type: v1alpha1.PartToolCall, ToolCall: &v1alpha1.ToolCall{ID: "call-1", Name: "read",
		Input: "{}"}}
	answer := v1alpha1.MessagePart{Type: v1alpha1.PartToolResult,
		ToolResult: &v1alpha1.ToolResult{ID: "call-1", Name: "read", Output: output}}
	history := []v1alpha1.ChatMessage{
		{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser, Content: "Read it."}},
		{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleAssistant, Parts: []v1alpha1.MessagePart{call},
			Generation: &v1alpha1.MessageGeneration{}}},
		{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleTool, Parts: []v1alpha1.MessagePart{answer}}},
	}
	if !byClient {
		history[2].Spec.Generation = &v1alpha1.MessageGeneration{}
	}
	return history
}

func TestEveryResultIsCutToWhatTheModelReads(t *testing.T) {
	const most = 16 << 10
	long := strings.Repeat("ä€😀", 100_000)
	for name, history := range map[string][]v1alpha1.ChatMessage{
		"of a client":    withResult(long, true),
		"of Parley":      withResult(long, false),
		"without a call": withResult(long, true)[2:],
	} {
		t.Run(name, func(t *testing.T) {
			built := Build(Input{History: history, ResultBytes: most})
			var said []string
			for _, m := range built {
				for _, part := range m.Content {
					if result, ok := part.(fantasy.ToolResultPart); ok {
						said = append(said, outputOf(result))
					}
				}
			}
			if len(said) != 1 || len(said[0]) > most || !strings.Contains(said[0], "bytes left out") ||
				strings.Contains(said[0], "\uFFFD") {
				t.Errorf("the model reads %d results, the first of %d bytes", len(said), len(strings.Join(said, "")))
			}
			if got := history[len(history)-1].Spec.Parts[0].ToolResult.Output; got != long {
				t.Error("the history was changed")
			}
		})
	}
}

func TestAResultIsCutTheSameWayInALongerHistory(t *testing.T) {
	history := withResult(strings.Repeat("line\n", 50_000), true)
	longer := append(slices.Clip(history),
		v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser, Content: "And?"}})
	before, after := Build(Input{History: history, ResultBytes: 20_000}),
		Build(Input{History: longer, ResultBytes: 20_000})
	if !reflect.DeepEqual(before, after[:len(before)]) {
		t.Error("the prompt of the longer history does not begin with that of the shorter one")
	}
}
