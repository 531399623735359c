// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

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
		a := NewAccumulator(v1alpha1.ProviderOpenAI, 7, []string{used})
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
		[]any{len(raw) > v1alpha1.MaxContentBytes+2, len(s.Parts) > v1alpha1.MaxParts})
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
		case v1alpha1.PartText:
			kept[parts.Text] += len(*p.Text)
		case v1alpha1.PartReasoning:
			kept[parts.Reasoning] += len(*p.Text)
		}
	}
	for _, kind := range []parts.Type{parts.Text, parts.Reasoning} {
		check.Equal(t, kind, len(shown[kind]), kept[kind])
	}
}
