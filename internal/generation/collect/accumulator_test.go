// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
)

// The stream parts that the tests are written in.
func part(kind fantasy.StreamPartType, id, delta string) fantasy.StreamPart {
	return fantasy.StreamPart{Type: kind, ID: id, Delta: delta}
}
func text(id, delta string) fantasy.StreamPart {
	return part(fantasy.StreamPartTypeTextDelta, id, delta)
}
func reasoning(id, delta string) fantasy.StreamPart {
	return part(fantasy.StreamPartTypeReasoningDelta, id, delta)
}
func call(id, name, input string) fantasy.StreamPart {
	return fantasy.StreamPart{Type: fantasy.StreamPartTypeToolCall, ID: id, ToolCallName: name, ToolCallInput: input}
}
func inputStart(id, name string) fantasy.StreamPart {
	return fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputStart, ID: id, ToolCallName: name}
}
func signed(p fantasy.StreamPart, signature string) fantasy.StreamPart {
	p.ProviderMetadata = fantasy.ProviderMetadata{wire.Key: &wire.State{Signature: signature}}
	return p
}

func add(a *collect.Accumulator, stream ...fantasy.StreamPart) (shown []parts.Part) {
	for i := range stream {
		if p, ok := a.Add(&stream[i]); ok {
			shown = append(shown, p)
		}
	}
	return shown
}

// outline is a step in one line.
func outline(s *collect.Step) string {
	var lines []string
	for _, p := range s.Parts {
		switch {
		case p.Text != nil:
			lines = append(lines, fmt.Sprintf("%s %q", p.Type, *p.Text))
		case p.ToolCall != nil:
			lines = append(lines, fmt.Sprintf("%s %s %s %s", p.Type, p.ToolCall.ID, p.ToolCall.Name, p.ToolCall.Input))
		case p.ToolResult != nil:
			lines = append(lines, fmt.Sprintf("%s %s %s", p.Type, p.ToolResult.ID, p.ToolResult.Output))
		case p.Source != nil:
			lines = append(lines, fmt.Sprintf("%s %s %s", p.Type, p.Source.URL, p.Source.Title))
		}
	}
	return strings.Join(lines, "; ")
}

func source(url, title string) fantasy.StreamPart {
	return fantasy.StreamPart{Type: fantasy.StreamPartTypeSource, ID: url + title, URL: url, Title: title}
}

func TestRepeatedCitationsLeaveTheReplyWhole(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderAnthropic, 7, nil)
	var want strings.Builder
	for i := range 300 {
		add(a, text(fmt.Sprint(i), "said "), source("https://a.example.com/?q=1&r=<2>", fmt.Sprint("A", i)),
			source("https://b.example.com", "B"), source("", "a document"), source("https://b.example.com", ""))
		want.WriteString("said ")
	}
	add(a, finish.Mark(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish,
		Usage: fantasy.Usage{InputTokens: 3, OutputTokens: 900}}, finish.Last{Reason: "stop"}))
	got := a.Finish()
	check.Equal(t, "truncated, full, parts, output tokens", []any{false, false, 303, 900, "stop"},
		[]any{got.Truncated, a.Full(), len(got.Parts), got.Usage.OutputTokens, got.FinishReason})
	check.Equal(t, "it says", want.String(), wordsOf(&got))
}

// Security (a search of a provider): cannot end a reply or fill a message with sources. Also
// TestRepeatedCitationsLeaveTheReplyWhole of internal/generation/collect.
func TestNoSourceEndsAReply(t *testing.T) {
	for name, title := range map[string]string{"many": "t", "large": strings.Repeat("<", 2000)} {
		t.Run(name, func(t *testing.T) {
			a := collect.NewAccumulator(v1beta1.ProviderAnthropic, 7, nil)
			for i := range 2 * v1beta1.MaxParts {
				add(a, source(fmt.Sprint("https://example.com/", i, strings.Repeat("&", len(title))), title))
			}
			long := strings.Repeat("a", v1beta1.MaxContentBytes/2)
			add(a, text("1", long), call("c", "t", "{}"))
			got := a.Finish()
			check.Equal(t, "truncated, full, words of, pending calls", []any{false, false, long, 1},
				[]any{got.Truncated, a.Full(), wordsOf(&got), got.PendingCalls})
			checkSize(t, got.Parts)
		})
	}
}

// wordsOf are the texts of the step.
func wordsOf(s *collect.Step) string {
	var words strings.Builder
	for _, p := range s.Parts {
		if p.Text != nil {
			words.WriteString(*p.Text)
		}
	}
	return words.String()
}

func TestBlocksComeOutAsTheyBegan(t *testing.T) {
	cases := map[string]struct {
		stream []fantasy.StreamPart
		want   string
		calls  int32
		used   []string
	}{
		"openai-compatible: one id for text and reasoning, reasoning ends late": {
			stream: []fantasy.StreamPart{
				part(fantasy.StreamPartTypeReasoningStart, "0", ""), reasoning("0", "hm"),
				part(fantasy.StreamPartTypeTextStart, "0", ""),
				text("0", "Hel"), part(fantasy.StreamPartTypeReasoningEnd, "0", ""), text("0", "lo"),
				part(fantasy.StreamPartTypeTextEnd, "0", ""),
			},
			want: `Reasoning "hm"; Text "Hello"`,
		},
		"anthropic: blocks in a row, arguments in another field": {
			stream: []fantasy.StreamPart{
				reasoning("0", "hm"), text("1", "Let me see"), inputStart("toolu_1", "current_time"),
				{Type: fantasy.StreamPartTypeToolInputDelta, ID: "toolu_1", ToolCallInput: `{"a"`},
				{Type: fantasy.StreamPartTypeToolInputDelta, ID: "toolu_1", ToolCallInput: `:1}`},
				call("toolu_1", "current_time", `{"a":1}`),
			},
			want: `Reasoning "hm"; Text "Let me see"; ToolCall toolu_1 current_time {"a":1}`, calls: 1,
		},
		"blocks without content vanish": {
			stream: []fantasy.StreamPart{part(fantasy.StreamPartTypeTextStart, "0", ""),
				part(fantasy.StreamPartTypeTextEnd, "0", ""), text("1", "x")},
			want: `Text "x"`,
		},
		"ids that an earlier step used, and characters that providers refuse": {
			stream: []fantasy.StreamPart{call("tool-call-0", "a", "{}"), call("functions.a:1", "a", "{}"), call("", "a", "{}"),
				call("x", "", "{}")},
			used:  []string{"tool-call-0"},
			want:  "ToolCall tool-call-0-7 a {}; ToolCall functions_a_1 a {}; ToolCall call a {}; ToolCall x unnamed {}",
			calls: 4,
		},
		"one id for two calls of one reply": {
			stream: []fantasy.StreamPart{call("x", "a", "1"), inputStart("x", "a"), call("x", "a", "2")},
			want:   "ToolCall x a 1; ToolCall x-7 a 2", calls: 2,
		},
		"a provider's own tool is not pending": {
			stream: []fantasy.StreamPart{
				{Type: fantasy.StreamPartTypeToolCall, ID: "s", ToolCallName: "search", ToolCallInput: "{}",
					ProviderExecuted: true},
				{Type: fantasy.StreamPartTypeToolResult, ID: "s", ToolCallName: "search", Delta: "found", ProviderExecuted: true},
				{Type: fantasy.StreamPartTypeSource, ID: "1", URL: "https://example.com", Title: "Example"},
			},
			want: "ToolCall s search {}; ToolResult s found; Source https://example.com Example",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := collect.NewAccumulator(v1beta1.ProviderOpenAICompatible, 7, c.used)
			add(a, c.stream...)
			got := a.Finish()
			check.Equal(t, "parts, pending calls, truncated", []any{c.want, c.calls, false},
				[]any{outline(&got), got.PendingCalls, got.Truncated})
		})
	}
}

func TestOnlyOneObjectIsAnInput(t *testing.T) {
	const invalid = v1beta1.RefusalInputInvalid
	for written, want := range map[string]v1beta1.CallRefusal{
		"": "", " \n": "", "null": "", "\tnull ": "", "{}": "", ` {"a":null} `: "", `{"a":1} x`: invalid, `{"a":1}{}`: invalid,
		"[]": invalid, `"{}"`: invalid, "7": invalid, "true": invalid, `{"a":1`: invalid, "nul": invalid,
	} {
		a := collect.NewAccumulator(v1beta1.ProviderGoogle, 7, nil)
		shown := add(a, call("c", "t", written))
		input := written
		if text := strings.TrimSpace(written); text == "" || text == "null" {
			input = "{}"
		}
		got := a.Finish().Parts[0].ToolCall
		check.Equal(t, "input, refusal, text", []any{input, want, input}, []any{got.Input, got.Refusal, shown[0].Text})
	}
	a := collect.NewAccumulator(v1beta1.ProviderAnthropic, 7, nil)
	own := call("s", "search", "null")
	own.ProviderExecuted = true
	add(a, own)
	got := a.Finish().Parts[0].ToolCall
	check.Equal(t, "input, refusal", []any{"null", ""}, []any{got.Input, string(got.Refusal)})
}

func TestUnknownEarlierCallsMakeEveryIDNew(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderOpenAICompatible, 7, []string{"x-7"})
	a.EarlierCallsUnknown()
	add(a, inputStart("call_0", "a"), call("call_0", "a", "{}"), call("x", "a", "{}"))
	got := a.Finish()
	check.Equal(t, "the reply", "ToolCall call_0-7 a {}; ToolCall x-7-1 a {}", outline(&got))
}

func TestCallKeepsTheIDOfItsProvider(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderOpenAICompatible, 7, []string{"call_1"})
	add(a, call("functions.weather:0", "a", "{}"), call("call_1", "a", "{}"), call("call_2", "a", "{}"),
		call("tool-call-0", "a", "{}"), call("tool-call-0", "a", "{}"),
		call(strings.Repeat("x", 129), "a", "{}"), call("é b", "a", "{}"))
	var got []string
	for _, part := range a.Finish().Parts {
		got = append(got, part.ToolCall.ID+" "+part.ToolCall.ProviderID)
	}
	want := []string{"functions_weather_0 functions.weather:0", "call_1-7 call_1", "call_2 ", "tool-call-0 ",
		"tool-call-0-7 ", strings.Repeat("x", 48) + " ", "__b "}
	check.Equal(t, "the ids", want, got)
}

func TestWhatIsShownIsWhatIsKept(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderAnthropic, 7, []string{"c"})
	shown := add(a, reasoning("0", "hm"), text("0", "a"), inputStart("c", "t"),
		fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputDelta, ID: "c", ToolCallInput: "{"},
		fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputDelta, ID: "c", Delta: "}"}, call("c", "t", "{}"))
	want := []parts.Part{
		{Type: parts.Reasoning, ID: "0", Text: "hm"}, {Type: parts.Text, ID: "0", Text: "a"},
		{Type: parts.ToolInput, ID: "c-7", Name: "t"}, {Type: parts.ToolInput, ID: "c-7", Text: "{"},
		{Type: parts.ToolInput, ID: "c-7", Text: "}"}, {Type: parts.ToolCall, ID: "c-7", Name: "t", Text: "{}"},
	}
	check.Equal(t, "what is shown", want, shown)
}

func TestTheLastMetadataOfABlockIsKept(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderAnthropic, 1, nil)
	add(a, reasoning("0", "hm"), signed(reasoning("0", ""), "first"),
		signed(part(fantasy.StreamPartTypeReasoningEnd, "0", ""), "last"),
		signed(part(fantasy.StreamPartTypeReasoningStart, "1", ""), "redacted"),
		reasoning("2", "x"), signed(reasoning("2", ""), strings.Repeat("s", v1beta1.MaxProviderMetadataBytes)))
	got := a.Finish().Parts
	check.Contains(t, got[0].ProviderMetadata, `"last"`)
	check.Contains(t, got[1].ProviderMetadata, `"redacted"`)
	check.Equal(t, "parts, text, metadata that are too large", []any{3, "", ""},
		[]any{len(got), *got[1].Text, got[2].ProviderMetadata})
}

func TestReasoningThatBeginsAgainKeepsBothSignatures(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderGoogle, 1, nil)
	begin, end := part(fantasy.StreamPartTypeReasoningStart, "0", ""), part(fantasy.StreamPartTypeReasoningEnd, "0", "")
	add(a, begin, reasoning("0", "hm"), signed(end, "first"), text("1", "Let me see"), begin, signed(end, "second"),
		call("c", "t", "{}"))
	got := a.Finish()
	check.Equal(t, "the reply", `Reasoning "hm"; Text "Let me see"; Reasoning ""; ToolCall c t {}`, outline(&got))
	check.Contains(t, got.Parts[0].ProviderMetadata, `"first"`)
	check.Contains(t, got.Parts[2].ProviderMetadata, `"second"`)
}

func TestPreviewIsTheFirstLineOfTheText(t *testing.T) {
	cases := map[string]struct {
		deltas []string
		want   string
	}{
		"nothing":                {nil, ""},
		"a short line":           {[]string{"Par", "is"}, "Paris"},
		"empty lines before":     {[]string{"\n ", "\r\nParis\nis"}, "Paris"},
		"as long as it may be":   {[]string{strings.Repeat("語", 28)}, strings.Repeat("語", 28)},
		"one character too many": {[]string{strings.Repeat("語", 29)}, strings.Repeat("語", 27) + "…"},
		"a very long line":       {[]string{strings.Repeat("a", 500)}, strings.Repeat("a", 27) + "…"},
		"colours, and a title":   {[]string{"\x1b", "[31mred\x1b]0;owned\a \u009b2J"}, "[31mred ]0;owned 2J"},
		"text that turns around": {[]string{"rm \u202e-fr\u2066 \u200bx\ufeff"}, "rm -fr x"},
		"other line breaks":      {[]string{"\u2028first\u2028second"}, "first"},
		"lines of nothing":       {[]string{"\u200b\x07\n \x1b\nParis"}, "Paris"},
		"an emoji":               {[]string{"👩\u200d💻 done"}, "👩\u200d💻 done"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
			add(a, reasoning("0", "not shown"))
			for _, delta := range c.deltas {
				add(a, text("0", delta))
			}
			check.Equal(t, "the preview", c.want, a.Finish().Preview)
		})
	}
}

func TestUsageMeansTheSameForEveryProvider(t *testing.T) {
	want := v1beta1.TokenUsage{InputTokens: 60, OutputTokens: 50, ReasoningTokens: 20, CacheReadTokens: 40,
		CacheWriteTokens: 5, TotalTokens: 155}
	cases := map[v1beta1.ModelProvider]fantasy.Usage{
		v1beta1.ProviderOpenAI: {InputTokens: 60, OutputTokens: 50, TotalTokens: 150, ReasoningTokens: 20,
			CacheReadTokens: 40, CacheCreationTokens: 5},
		v1beta1.ProviderAnthropic: {InputTokens: 60, OutputTokens: 50, TotalTokens: 110, ReasoningTokens: 20,
			CacheReadTokens: 40, CacheCreationTokens: 5},
		v1beta1.ProviderGoogle: {InputTokens: 100, OutputTokens: 50, ReasoningTokens: 20, CacheReadTokens: 40,
			CacheCreationTokens: 5},
	}
	for provider, usage := range cases {
		a := collect.NewAccumulator(provider, 1, nil)
		add(a, finish.Mark(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, Usage: usage}, finish.Last{Reason: "stop"}))
		got := a.Finish()
		check.Equal(t, provider, []any{want, "stop"}, []any{got.Usage, got.FinishReason})
	}
}

func TestReasoningKeepsItsTitle(t *testing.T) {
	for text, want := range map[string]string{
		"**Looking at the pods**\n\nFirst I list them.": "Looking at the pods",
		"**Looking at the pods**":                       "Looking at the pods",
		"**Bold** words begin this.":                    "",
		"First **I** list them.":                        "",
		"":                                              "",
	} {
		a := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
		add(a, part(fantasy.StreamPartTypeReasoningStart, "r", ""), reasoning("r", text),
			part(fantasy.StreamPartTypeReasoningEnd, "r", ""), part(fantasy.StreamPartTypeTextDelta, "t", "Done."))
		check.Equal(t, text, want, a.Finish().Parts[0].Title)
	}
}

func TestReasoningAndCallsSayWhenTheyCame(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	reply := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
	reply.TellTime(func() time.Time { now = now.Add(time.Second); return now })
	shown := add(reply, part(fantasy.StreamPartTypeReasoningStart, "0", ""), reasoning("0", "Let me "),
		reasoning("0", "see"), part(fantasy.StreamPartTypeReasoningEnd, "0", ""), text("0", "Hello"), call("c", "t", "{}"))
	said := reply.Finish().Parts
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 0).UTC() }
	check.Equal(t, "when reasoning began and ended, text and call began", []any{at(1), at(2), true, at(3)}, []any{
		said[0].StartedAt.UTC(), said[0].FinishedAt.UTC(), said[1].StartedAt == nil, said[2].StartedAt.UTC()})
	for i, want := range []time.Time{at(1), {}, {}, at(3)} {
		check.Equal(t, fmt.Sprintf("when part %d, %s, is shown to begin", i, shown[i].Type), want, shown[i].At)
	}
}
