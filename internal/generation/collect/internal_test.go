// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
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

func TestUsageIsBoundToWhatTheAPITakes(t *testing.T) {
	for name, said := range map[string]fantasy.Usage{
		"below zero": {InputTokens: -5, OutputTokens: -7, TotalTokens: -12, ReasoningTokens: -1, CacheReadTokens: -2,
			CacheCreationTokens: -3},
		"the smallest": {InputTokens: math.MinInt64, CacheReadTokens: math.MinInt64, OutputTokens: math.MinInt64},
		"the largest": {InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, ReasoningTokens: math.MaxInt64,
			CacheReadTokens: math.MaxInt64, CacheCreationTokens: math.MaxInt64},
		"of both":           {InputTokens: math.MaxInt64, OutputTokens: -1, CacheReadTokens: math.MinInt64},
		"more from a cache": {InputTokens: 1, CacheReadTokens: 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, provider := range []v1beta1.ModelProvider{v1beta1.ProviderOpenAICompatible, v1beta1.ProviderGoogle,
				v1beta1.ProviderAnthropic} {
				u := usageOf(provider, said)
				for _, count := range []int64{u.InputTokens, u.OutputTokens, u.ReasoningTokens, u.CacheReadTokens,
					u.CacheWriteTokens, u.TotalTokens} {
					check.Equal(t, u, true, count >= 0 && count <= 5*maxCount)
				}
			}
		})
	}
}

func TestUsageIsCountedFromATotalAlone(t *testing.T) {
	for total, want := range map[int64]int64{900: 900, 0: 0, -5: 0} {
		check.Equal(t, total, v1beta1.TokenUsage{TotalTokens: want},
			usageOf(v1beta1.ProviderOpenAICompatible, fantasy.Usage{TotalTokens: total}))
	}
}

// kinds are the kinds of parts that a stream can have, also in an order that no provider keeps.
var kinds = []fantasy.StreamPartType{
	fantasy.StreamPartTypeTextStart, fantasy.StreamPartTypeTextDelta, fantasy.StreamPartTypeTextEnd,
	fantasy.StreamPartTypeReasoningStart, fantasy.StreamPartTypeReasoningDelta, fantasy.StreamPartTypeReasoningEnd,
	fantasy.StreamPartTypeToolInputStart, fantasy.StreamPartTypeToolInputDelta, fantasy.StreamPartTypeToolInputEnd,
	fantasy.StreamPartTypeToolCall, fantasy.StreamPartTypeToolResult, fantasy.StreamPartTypeSource,
	fantasy.StreamPartTypeFinish,
}

// streamOf reads a stream from bytes: of each part a byte for its kind, one for its id and flags, one for how often its
// text is repeated, and the text up to the next zero.
func streamOf(data []byte) (stream []fantasy.StreamPart) {
	for len(data) >= 3 {
		kind, id, times := data[0], data[1], int(data[2])
		text, rest, _ := strings.Cut(string(data[3:]), "\x00")
		data = []byte(rest)
		p := fantasy.StreamPart{Type: kinds[int(kind)%len(kinds)], ID: strings.Repeat("i d", int(id)%4), ToolCallName: text,
			ProviderExecuted: id&16 != 0}
		p.Delta = strings.Repeat(text, 1+times*times)
		p.ToolCallInput, p.URL, p.Title = p.Delta, p.Delta, text
		stream = append(stream, p)
	}
	return stream
}

func FuzzAccumulator(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x00\x01\x01\x02hello\x00\x02\x01\x00"), "call")
	f.Add([]byte(
		"\x06\x01\x00get\x00\x09\x01\x00{}\x00\x09\x01\x00[]\x00\x0a\x11\x01out\x00\x0b\x02\x00src\x00\x0c\x00\x00"), "i_d")
	f.Add([]byte("\x01\x00\xff\u2028<&>\"\\\x01\xff\x00\x04\x00\xff\xff\xfe\x00\x01\x00\xffend"), "")
	f.Fuzz(func(t *testing.T, data []byte, used string) {
		a := NewAccumulator(v1beta1.ProviderOpenAI, 7, []string{used})
		shown := map[parts.Type]string{}
		for _, p := range streamOf(data) {
			if part, ok := a.Add(&p); ok {
				shown[part.Type] += part.Text
			}
		}
		s := a.Finish()
		checkFits(t, s)
		checkCalls(t, s, used)
		checkShown(t, s, shown)
	})
}

// checkFits holds that the API server can store the parts.
func checkFits(t *testing.T, s Step) {
	t.Helper()
	raw, err := json.Marshal(s.Parts)
	check.OK(t, err)
	check.Equal(t, "too long, too many parts", []any{false, false},
		[]any{len(raw) > v1beta1.MaxContentBytes+2, len(s.Parts) > v1beta1.MaxParts})
}

// checkCalls holds that each call has an id that no other has, and that the pending ones are counted.
func checkCalls(t *testing.T, s Step, used string) {
	t.Helper()
	ids, pending := []string{used}, int32(0)
	for _, p := range s.Parts {
		if p.ToolCall == nil {
			continue
		}
		if id := p.ToolCall.ID; id == "" || len(id) > 128 || slices.Contains(ids, id) {
			t.Errorf("the id %q is empty, too long, or was used before", id)
		}
		ids = append(ids, p.ToolCall.ID)
		if !p.ToolCall.ProviderExecuted {
			pending++
		}
	}
	check.Equal(t, "pending calls", s.PendingCalls, pending)
}

// checkShown holds that of texts as much is kept as was shown.
func checkShown(t *testing.T, s Step, shown map[parts.Type]string) {
	t.Helper()
	kept := map[parts.Type]int{}
	for _, p := range s.Parts {
		switch p.Type {
		case v1beta1.PartText:
			kept[parts.Text] += len(*p.Text)
		case v1beta1.PartReasoning:
			kept[parts.Reasoning] += len(*p.Text)
		}
	}
	for _, kind := range []parts.Type{parts.Text, parts.Reasoning} {
		check.Equal(t, kind, len(shown[kind]), kept[kind])
	}
}
