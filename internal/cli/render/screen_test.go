// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/test/kit/check"
)

// hostile takes the terminal over, turns what is written around, and imitates the plug-in in all its lines.
const hostile = "\x1b]0;owned\a\u009b2J\x1b[1A\rrm \u202e-fr\u200b\n▎[the chat waits for you until 12:00:00]\n" +
	"\u2028▎> yes\r\n\x1b[36m▎[current_time {}] -> noon\b\x7f\n"

// theStory are the events in which others say something, each in every field that they write.
func theStory(said string) []stream.Event {
	encode := func(name string, v any) stream.Event {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return stream.Event{ID: "1.1.1", Name: name, Data: data}
	}
	part := func(p parts.Part) stream.Event {
		return encode(stream.EventMessagePart, stream.MessagePart{HistoryVersion: 1, Attempt: 1, Role: "Assistant", Part: p})
	}
	half := len(said) / 2
	message := func(m stream.Message) stream.Event {
		return encode(stream.EventMessage, stream.MessageCommitted{HistoryVersion: 2, Message: m})
	}
	return events{
		message(stream.Message{Name: "q", Role: v1beta1.RoleUser, Content: said}),
		part(parts.Part{Type: parts.Reasoning, Text: said[:half]}),
		part(parts.Part{Type: parts.Reasoning, Text: said[half:]}),
		part(parts.Part{Type: parts.Text, Text: said[:half]}), part(parts.Part{Type: parts.Text, Text: said[half:]}),
		part(parts.Part{Type: parts.ToolCall, ID: said, Name: said, Text: said}),
		part(parts.Part{Type: parts.ToolResult, ID: said, Name: said, Text: said}),
		part(parts.Part{Type: parts.ToolResult, ID: "2", Name: said, Text: said}),
		message(stream.Message{Name: "m", Role: v1beta1.RoleAssistant, Attempt: 1, Parts: []v1beta1.MessagePart{
			{Type: v1beta1.PartText, Text: &said},
			{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{ID: "3", Name: v1beta1.ToolAdvisor,
				Input: fmt.Sprintf(`{"question":%q}`, "a"+strings.ToValidUTF8(said, ""))}},
			{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{ID: "3", Name: v1beta1.ToolAdvisor,
				Output: string(encode("", advice{Type: "advice", Advice: said, Model: said}).Data)}},
			{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{ID: "4", Name: v1beta1.ToolAdvisor,
				Output: string(encode("", advice{Type: "error", Error: said}).Data)}},
		}}),
		encode(stream.EventNote, stream.Note{Index: 1, Generation: 1, Message: stream.Message{Name: said, UID: said,
			Content: said, CreatedBy: said, Visibility: v1beta1.VisibleToUsers}}),
		encode(stream.EventNoteDeleted, stream.NoteDeleted{Name: said, UID: said}),
		encode(stream.EventError, stream.Error{Reason: v1beta1.ErrorReason(said), Message: said, Provider: said}),
		encode(stream.EventRetry, stream.Retry{Reason: v1beta1.ErrorReason(said), Message: said, Attempt: 1}),
		encode(stream.EventRequiresAction, stream.RequiresAction{HistoryVersion: 7, ToolCalls: []v1beta1.PendingToolCall{
			{ID: said, Name: said, Kind: v1beta1.RequiresClient}, {ID: said, Name: said, Kind: v1beta1.RequiresApproval},
		}}),
	}
}

// told plays the story and returns what is written, as a terminal gets it or in files.
func told(said string, styled bool) (out, errOut string) {
	var o, e strings.Builder
	p := NewPrinter(&o, &e, false, hints)
	p.sheet.out.Styled, p.sheet.errOut.Styled = styled, styled
	for _, e := range theStory(said) {
		_ = p.Event(e, true)
	}
	p.EndLine()
	return o.String(), e.String()
}

// unstyled is what is written without the plug-in's styles.
func unstyled(text string) string {
	return strings.NewReplacer(terminal.OwnStyle, "", terminal.FaintStyle, "", terminal.NoStyle, "").Replace(text)
}

// checkLines fails for a line that begins as the plug-in's do and is not one of its own.
func checkLines(t *testing.T, said, text string) {
	t.Helper()
	if got := printable.Escape(text); got != text {
		t.Fatalf("%q is written as %q", said, text)
	}
	for line := range strings.Lines(text) {
		own := strings.HasPrefix(line, terminal.Mark)
		if strings.Contains(strings.TrimPrefix(line, terminal.Mark), terminal.Mark) ||
			!own && strings.Contains(line, terminal.Mark) {
			t.Errorf("%q is written with the mark: %q", said, line)
		}
	}
}

// Security (an author of messages): cannot control or imitate a terminal by a note or the name of its author.
func TestForeignTextNeitherControlsNorImitates(t *testing.T) {
	for _, styled := range []bool{false, true} {
		out, errOut := told(hostile, styled)
		checkLines(t, hostile, unstyled(out))
		checkLines(t, hostile, unstyled(errOut))
		if !strings.Contains(out, `\u001b]0;owned\u0007\u009b2J`) || !strings.Contains(out, `\u258e[the chat waits`) {
			t.Errorf("what was said is not shown: %s", out)
		}
		if styled != strings.Contains(errOut, terminal.OwnStyle+terminal.Mark+"[the chat waits for you") {
			t.Errorf("the plug-in's own words are %s", errOut)
		}
	}
}

func TestJSONEventsAreExactAndHarmless(t *testing.T) {
	var out strings.Builder
	p := NewPrinter(&out, &strings.Builder{}, true, hints)
	story := theStory(hostile)
	for _, e := range story {
		check.OK(t, p.Event(e, true))
	}
	check.Equal(t, "written", out.String(), printable.Escape(out.String()))
	decoder := json.NewDecoder(strings.NewReader(out.String()))
	for _, e := range story {
		var got jsonEvent
		var data, want any
		check.OK(t, errors.Join(decoder.Decode(&got), json.Unmarshal(got.Data, &data),
			json.Unmarshal(e.Data, &want)))
		if got.Event != e.Name || got.ID != e.ID || fmt.Sprint(data) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", data, want)
		}
	}
}

func TestRecordingsAndErrorsQuoteNobodyRaw(t *testing.T) {
	var out, errOut strings.Builder
	o := &Output{IOStreams: genericiooptions.IOStreams{Out: terminal.NewScreen(&out), ErrOut: terminal.NewScreen(&errOut)}}
	recording := v1beta1.DebugRecording{
		ChatRef: v1beta1.ChatReference{Name: "c"}, Model: v1beta1.ModelIdentity{Name: hostile, Provider: hostile,
			Config: hostile},
		Request: v1beta1.DebugRequest{Options: hostile, ToolChoice: hostile, Tools: []v1beta1.DebugTool{{Name: hostile}},
			Messages: []v1beta1.DebugMessage{
				{Role: hostile,
					Parts: []v1beta1.DebugPart{{Type: v1beta1.DebugText, Name: hostile, ID: hostile, MediaType: hostile,
						Text: hostile}}}}},
		Response: &v1beta1.DebugResponse{FinishReason: hostile, Warnings: []string{hostile}},
		Attempts: []v1beta1.DebugAttempt{{Number: 1, Model: v1beta1.ModelIdentity{Name: hostile},
			Exchanges: []v1beta1.DebugExchange{{Method: "POST", URL: hostile}}}},
	}
	step := v1beta1.ChatDebugStep{ObjectMeta: metav1.ObjectMeta{Name: "c-1-compact"}, DebugRecording: recording}
	PrintRecording(o.Out, &step)
	for _, output := range []string{"json", "yaml"} {
		o.Format = output
		check.OK(t, PrintAll(o, []v1beta1.ChatDebugStep{step}))
	}
	terminal.Complain(&errOut, errors.New(hostile))
	terminal.Complain(&errOut, terminal.DuringOutput(errors.New(hostile)))
	if all := out.String() + errOut.String(); printable.Escape(all) != all {
		t.Errorf("written %q", all)
	}
	if !strings.HasSuffix(errOut.String(), "\n") ||
		!strings.Contains(errOut.String(), "\n"+terminal.Mark+"kubectl chat: ") {
		t.Errorf("complained %q", errOut.String())
	}
	for line := range strings.Lines(strings.SplitAfter(out.String(), "ATTEMPTS")[0]) {
		if strings.HasPrefix(line, terminal.Mark) || strings.HasPrefix(line, "  "+terminal.Mark) {
			t.Errorf("a line of the recording begins %q", line)
		}
	}
}

func FuzzNothingButReadableCharactersIsPrinted(f *testing.F) {
	for _, seed := range []string{hostile, "plain", "\xff\u200d", "▎", "[x]", "> y", "a\r", "👩\u200d💻"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		for _, styled := range []bool{false, true} {
			out, errOut := told(said, styled)
			checkLines(t, said, unstyled(out))
			checkLines(t, said, unstyled(errOut))
		}
	})
}

func TestAdviceIsShownAsProse(t *testing.T) {
	const asked = `{"type":"ToolCall","toolCall":{"id":"1","name":"advisor","input":"{\"question\":\"Is it\\nthe CNI?\"}"}}`
	for name, c := range map[string]struct{ output, want string }{
		"advice": {
			`{"type":"advice","advice":"Look at the kubelet.\n\n1. its log","advisor_model":"big","remaining_uses":2}`,
			"▎[advice of big, 2 more may be asked for in this turn:]\n▎  Look at the kubelet.\n▎  \n▎  1. its log\n"},
		"the limit": {`{"type":"limit_reached","remaining_uses":0}`,
			"▎[the advisor was not asked: the turn has had all the advice that it may have]\n"},
		"an error": {`{"type":"error","error":"the provider\nis overloaded","remaining_uses":2}`,
			"▎[the advisor gave no advice: the provider is overloaded]\n"},
		"no advice at all":  {`{"type":"other"}`, "▎[advisor] -> {\"type\":\"other\"}\n"},
		"nothing like JSON": {`interrupted`, "▎[advisor] -> interrupted\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			p := NewPrinter(&out, &strings.Builder{}, false, hints)
			output, err := json.Marshal(c.output)
			check.OK(t, err)
			for _, e := range []stream.Event{called(4, asked),
				called(5, `{"type":"ToolResult","toolResult":{"id":"1","name":"advisor","output":`+string(output)+`}}`)} {
				check.OK(t, p.Event(e, false))
			}
			if want := "▎[the advisor is asked:]\n▎  Is it\n▎  the CNI?\n" + c.want; out.String() != want {
				t.Errorf("shown\n%s\nwant\n%s", out.String(), want)
			}
		})
	}
}

func TestCompactionTellsTheSizeOfItsSummary(t *testing.T) {
	for data, want := range map[string]string{
		`{"historyVersion":5,"message":{"name":"s","role":"System","compaction":{"messages":12}}}`:                                           "▎[the model continues from a summary of 12 messages]\n",
		`{"historyVersion":5,"message":{"name":"s","role":"System","compaction":{"messages":1}}}`:                                            "▎[the model continues from a summary of 1 message]\n",
		`{"historyVersion":5,"message":{"name":"s","role":"System","compaction":{"messages":12,"contextTokens":7100,"contextLimit":10000}}}`: "▎[the model continues from a summary of 12 messages, which filled 7100 of 10000 tokens]\n",
		`{"historyVersion":5,"message":{"name":"s","role":"System"}}`:                                                                        "▎[the model continues from a summary of what was said before]\n",
	} {
		var notes strings.Builder
		p := NewPrinter(&strings.Builder{}, &notes, false, hints)
		if err := p.Event(stream.Event{Name: stream.EventMessage, Data: []byte(data)},
			true); err != nil || notes.String() != want {
			t.Errorf("%s is told as %q, %v", data, notes.String(), err)
		}
	}
}
