// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// BenchmarkAccumulator collects a reply of 10000 deltas of four bytes;
// its time per delta must not depend on their number.
func BenchmarkAccumulator(b *testing.B) {
	delta := text("0", "abc ")
	for b.Loop() {
		a := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
		for range 10_000 {
			a.Add(&delta)
		}
		a.Finish()
	}
}

// FuzzContentFitsIntoOneMessage repeats a reply of every kind of part until the room ends.
func FuzzContentFitsIntoOneMessage(f *testing.F) {
	f.Add("plain", "call_1", "signature", uint16(100))
	f.Add("\"\\\n\x00<>&", "functions.x:1", "", uint16(9999))
	f.Add("ä語😀\u2028", "", "<", uint16(3))
	f.Add("\uFFFD", strings.Repeat("x", 300), "\x7f", uint16(1))
	f.Fuzz(func(t *testing.T, content, id, signature string, repeat uint16) {
		if !utf8.ValidString(content) || !utf8.ValidString(id) || !utf8.ValidString(signature) {
			t.Skip("fantasy decodes JSON, which yields valid text")
		}
		a := collect.NewAccumulator(v1beta1.ProviderAnthropic, 3, []string{"call"})
		long := strings.Repeat(content, int(repeat)%5000+1)
		for range v1beta1.MaxParts {
			add(a, signed(reasoning(id, long), signature), text(id, content), call(id, content, long),
				fantasy.StreamPart{Type: fantasy.StreamPartTypeSource, ID: id, URL: content, Title: content},
				fantasy.StreamPart{Type: fantasy.StreamPartTypeToolResult, ID: id, ToolCallName: id, Delta: content,
					ProviderExecuted: true})
			if a.Full() {
				break
			}
		}
		got := a.Finish()
		checkSize(t, got.Parts)
		for _, p := range got.Parts {
			if p.Text != nil && !utf8.ValidString(*p.Text) {
				t.Error("a character was cut in two")
			}
			if c := p.ToolCall; c != nil && (c.ID == "" || len(c.ID) > 64 || c.Name == "") {
				t.Errorf("call has id %q, name %q", c.ID, c.Name)
			}
		}
	})
}

// checkSize fails if the parts are more than one message may hold, as the API server counts, or broken.
func checkSize(t *testing.T, content []v1beta1.MessagePart) int {
	t.Helper()
	raw, err := json.Marshal(content)
	check.OK(t, err)
	check.Equal(t, "too long besides the brackets, too many parts", []any{false, false},
		[]any{len(raw) > v1beta1.MaxContentBytes+2, len(content) > v1beta1.MaxParts})
	return len(raw)
}

func TestReplyIsCutAtAMessagesSize(t *testing.T) {
	for name, unit := range map[string]string{
		"plain": "a", "quotes": `"`, "backslashes": `\`, "newlines": "\n", "control characters": "\x01", "html": "<&>",
		"two bytes":   "ä",
		"three bytes": "語", "four bytes": "😀", "line separators": "\u2028\u2029", "mixed": "a\"\n\x02ä語😀<",
		"the replacement character": "\uFFFD",
	} {
		t.Run(name, func(t *testing.T) {
			a := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
			delta := strings.Repeat(unit, 997)
			for !a.Full() {
				add(a, text("0", delta))
			}
			add(a, text("0", "lost"), text("9", "lost"), call("c", "t", "{}"))
			got := a.Finish()
			check.Equal(t, "parts, truncated, whole characters, room is left", []any{1, true, true, false}, []any{len(got.Parts),
				got.Truncated, utf8.ValidString(*got.Parts[0].Text), checkSize(t, got.Parts) < v1beta1.MaxContentBytes-240})
		})
	}
}

func TestCallIsKeptWholeOrNotAtAll(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
	add(a, text("0", strings.Repeat("a", v1beta1.MaxContentBytes/2)),
		call("c", "t", strings.Repeat(`"`, v1beta1.MaxContentBytes/3)))
	got := a.Finish()
	check.Equal(t, "parts, pending calls, truncated", []any{1, 0, true},
		[]any{len(got.Parts), got.PendingCalls, got.Truncated})
}

func TestEndlessInputOfCallEndsReply(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderOpenAICompatible, 1, nil)
	add(a, fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputStart, ID: "c", ToolCallName: "write"})
	read, delta := 0, strings.Repeat("\n", 1000)
	for !a.Full() && read < 2*v1beta1.MaxContentBytes {
		add(a, fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputDelta, ID: "c", Delta: delta})
		read += len(delta)
	}
	got := a.Finish()
	check.Equal(t, "read too much, truncated, outcome, pending calls",
		[]any{false, true, v1beta1.ReplyMaxTokensReached, int32(1)},
		[]any{read > v1beta1.MaxContentBytes+len(delta), got.Truncated, got.ReplyOutcome, got.PendingCalls})
	check.Equal(t, "parts", []v1beta1.MessagePart{{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{ID: "c",
		Name: "write", Input: "{}", Refusal: v1beta1.RefusalInputTruncated}}}, got.Parts)
}

func TestAReplyOfTooManyPartsIsCut(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
	for i := range v1beta1.MaxParts {
		add(a, text(fmt.Sprint(i), "x"))
	}
	if a.Full() {
		t.Fatal("full before the limit is passed")
	}
	add(a, call("c", "t", "{}"))
	got := a.Finish()
	check.Equal(t, "parts, truncated, full", []any{v1beta1.MaxParts, true, true},
		[]any{len(got.Parts), got.Truncated, a.Full()})
}

func TestResultsShrinkUntilTheyFitTogether(t *testing.T) {
	cases := map[string]struct {
		calls     int
		output    string
		truncated bool
	}{
		"few and short":        {3, "short", false},
		"few and long":         {8, strings.Repeat("a", tools.MaxResultBytes), false},
		"many and long":        {64, strings.Repeat("ä", tools.MaxResultBytes/2), true},
		"long through escapes": {20, strings.Repeat("\x01", tools.MaxResultBytes), true},
		"the limit of parts":   {v1beta1.MaxParts, strings.Repeat(`"`, tools.MaxResultBytes), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var results []v1beta1.ToolResult
			for i := range c.calls {
				results = append(results, v1beta1.ToolResult{ID: fmt.Sprint("call_", i), Name: "t", Output: c.output})
			}
			got := collect.Results(results, nil, tools.MaxResultBytes, nil)
			check.Equal(t, "parts, truncated", []any{c.calls, c.truncated}, []any{len(got.Parts), got.Truncated})
			checkSize(t, got.Parts)
			for i, p := range got.Parts {
				r := p.ToolResult
				check.Equal(t, "id, empty, whole characters", []any{results[i].ID, false, true},
					[]any{r.ID, r.Output == "", utf8.ValidString(r.Output)})
			}
			check.Equal(t, "the caller's results", c.output, results[0].Output)
		})
	}
}

func TestFilesAreKeptWholeOrNotAtAll(t *testing.T) {
	file := v1beta1.MessageFile{Name: "a.png", MediaType: "image/png", Data: strings.Repeat("iVBO", 170<<10)}
	result := []v1beta1.ToolResult{{ID: "1", Output: "Look."}}
	got, fits := collect.WithFiles(collect.Results(result, nil, tools.MaxResultBytes, nil), []v1beta1.MessageFile{file})
	checkSize(t, got.Parts)
	check.Equal(t, "one fits", []any{true, 2, v1beta1.PartFile, true},
		[]any{fits, len(got.Parts), got.Parts[1].Type, got.Parts[1].File.Data == file.Data})
	whole := collect.Results(result, nil, tools.MaxResultBytes, nil)
	got, fits = collect.WithFiles(whole, []v1beta1.MessageFile{file, file})
	check.Equal(t, "two fit", []any{false, 1}, []any{fits, len(got.Parts)})
}

func TestResultsAreShortenedForTheModel(t *testing.T) {
	long := []v1beta1.ToolResult{{ID: "1", Output: strings.Repeat("a", tools.MaxResultBytes)}}
	got := collect.Results(long, nil, 16<<10, nil)
	n := len(got.Parts[0].ToolResult.Output)
	check.Equal(t, "too long, short, truncated", []any{false, false, false}, []any{n > 16<<10, n < 15<<10, got.Truncated})
}

func unsupported(setting, details string) fantasy.CallWarning {
	return fantasy.CallWarning{Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: setting, Details: details}
}

func TestWarningsNameSettingsAsTheConfigurationDoes(t *testing.T) {
	reply := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
	reply.Warn([]fantasy.CallWarning{unsupported("top_k", ""), unsupported("TopP", "not while it thinks")})
	reply.Add(&fantasy.StreamPart{Type: fantasy.StreamPartTypeWarnings, Warnings: []fantasy.CallWarning{
		unsupported("topK", ""), // the same once more
		unsupported("FrequencyPenalty", "never"),
		{Type: fantasy.CallWarningTypeOther, Message: "dropping empty user message"},
	}})
	want := []string{"topK was left out: the provider does not take it", "topP was left out: not while it thinks",
		"frequencyPenalty was left out: never"}
	check.Equal(t, "finish", want, reply.Finish().Warnings)
}

func TestWarningsFitIntoAMessage(t *testing.T) {
	reply := collect.NewAccumulator(v1beta1.ProviderOpenAI, 1, nil)
	for i := range 40 {
		reply.Warn([]fantasy.CallWarning{unsupported(fmt.Sprint("s", i), strings.Repeat("é", 500))})
	}
	got := reply.Finish().Warnings
	check.Equal(t, "warnings", 16, len(got))
	for _, w := range got {
		if len(w) > 256 {
			t.Errorf("one has %d bytes", len(w))
		}
	}
}
