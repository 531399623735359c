// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"testing"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/test/kit/check"
)

func spoken(role string, all ...parts.Part) (frames []parts.Frame) {
	for i, p := range all {
		frames = append(frames, parts.Frame{Seq: int64(i + 1), Role: role, Part: p})
	}
	return frames
}

func TestStreamedPartsAreKeptWhileWhole(t *testing.T) {
	s := FromFrames(spoken("Assistant",
		parts.Part{Type: parts.Reasoning, ID: "0", Text: "Hm"}, parts.Part{Type: parts.Text, ID: "0", Text: "Let me "},
		parts.Part{Type: parts.Text, ID: "0", Text: "look."},
		parts.Part{Type: parts.ToolInput, ID: "call_1", Name: "f", Text: `{"a":`},
		parts.Part{Type: parts.ToolCall, ID: "call_2", Name: "g", Text: `{"b":1}`},
		parts.Part{Type: parts.ToolCall, ID: "call_3", Name: "h", Text: `{"c":`},
	))
	check.Equal(t, "parts, texts, call, pending, preview", []any{3, "Hm", "Let me look.", "call_2", 1, "Let me look."},
		[]any{len(s.Parts), *s.Parts[0].Text, *s.Parts[1].Text, s.Parts[2].ToolCall.ID, s.PendingCalls, s.Preview})
}

func TestResultsOfToolsThatWereStreamedAreKept(t *testing.T) {
	s := FromFrames(spoken("Tool", parts.Part{Type: parts.ToolResult, ID: "call_1", Name: "f", Text: "no", IsError: true}))
	check.Equal(t, "parts, output, is error", []any{1, "no", true},
		[]any{len(s.Parts), s.Parts[0].ToolResult.Output, s.Parts[0].ToolResult.IsError})
	check.Equal(t, "the parts of nothing", 0, len(FromFrames(nil).Parts))
}
