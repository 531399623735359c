// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/test/modelserver"
)

func says(text string) modelserver.Reply {
	return modelserver.Reply{Steps: []modelserver.Step{modelserver.Say(text)}}
}

func TestFirstMatchingUnexhaustedRuleAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		rules []modelserver.Rule
		want  []string
	}{
		"in order": {[]modelserver.Rule{{Reply: says("1")}, {Reply: says("2")}}, []string{"1", "1"}},
		"a limit":  {[]modelserver.Rule{{Times: 2, Reply: says("1")}, {Reply: says("2")}}, []string{"1", "1", "2"}},
		"the nth call": {[]modelserver.Rule{{Match: modelserver.Match{Call: 2}, Reply: says("2")}, {Reply: says("1")}},
			[]string{"1", "2", "1"}},
		"model": {[]modelserver.Rule{{Match: modelserver.Match{Model: "n"}, Reply: says("1")},
			{Match: modelserver.Match{Model: "m"}, Reply: says("2")}}, []string{"2"}},
		"text, any case": {[]modelserver.Rule{{Match: modelserver.Match{LastUserText: "B"}, Reply: says("1")},
			{Match: modelserver.Match{LastUserText: "A"}, Reply: says("2")}}, []string{"2"}},
		"protocol": {[]modelserver.Rule{{Match: modelserver.Match{Protocol: modelserver.Anthropic}, Reply: says("1")},
			{Reply: says("2")}}, []string{"2"}},
		"header": {[]modelserver.Rule{{Match: modelserver.Match{Header: "x-none"}, Reply: says("1")},
			{Match: modelserver.Match{Header: "x-some"}, Reply: says("2")}}, []string{"2"}},
		"tool": {[]modelserver.Rule{{Match: modelserver.Match{ToolOffered: "f"}, Reply: says("1")},
			{Reply: says("2")}}, []string{"2"}},
		"results": {[]modelserver.Rule{{Match: modelserver.Match{MinToolResults: 1}, Reply: says("1")},
			{Match: modelserver.Match{ToolResults: new(0)}, Reply: says("2")}}, []string{"2"}},
		"none but a limit": {[]modelserver.Rule{{Times: 1, Reply: says("1")}},
			[]string{"1", "m "}},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, modelserver.Script{Rules: c.rules})
			for i, want := range c.want {
				if _, body := send(t, http.MethodPost, url+chatPath, chat(user), "X-Some", "v"); !strings.Contains(body,
					`"content":"`+want+`"`) {
					t.Errorf("call %d, not %q: %s", i+1, want, body)
				}
			}
		})
	}
}

func TestCallsAreCountedPerConversation(t *testing.T) {
	rules := []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("call {{.Call}}")}}}}
	_, url := serve(t, modelserver.Script{Rules: rules})
	for i, c := range []struct{ message, want string }{{"a", "call 1"}, {"a", "call 2"}, {"b", "call 1"}} {
		_, answer := send(t, http.MethodPost, url+chatPath, chat(`{"role":"user","content":"`+c.message+`"}`))
		if !strings.Contains(answer, c.want) {
			t.Errorf("request %d, not %s: %s", i, c.want, answer)
		}
	}
}

func TestTemplateExposesRequestButNoHeaderValues(t *testing.T) {
	text := `{{.Protocol}} {{.Model}} {{.LastUserText}} {{.MessageCount}} {{len .Tools}} {{.ToolResultsText}} {{(index .ToolResults 0).Name}} {{field "b" "{\"b\":7}"}}`
	_, url := serve(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: says(text)}}})
	_, body := send(t, http.MethodPost, url+chatPath, chat(user+","+asks+","+answers), "Authorization", "Bearer sk-secret")
	if !strings.Contains(body, `openai-chat m a 3 0 a f 7"`) || strings.Contains(body, "sk-secret") {
		t.Error(body)
	}
}

func TestATextIsCutWhereTheScriptSays(t *testing.T) {
	for name, c := range map[string]struct {
		text modelserver.Text
		want []string
	}{
		"whole":                {modelserver.Text{Value: "a b"}, []string{"a b"}},
		"words":                {modelserver.Text{Value: "a b  c", PieceWords: 2}, []string{"a b  ", "c"}},
		"bytes":                {modelserver.Text{Value: "abcde", PieceBytes: 2}, []string{"ab", "cd", "e"}},
		"never in a character": {modelserver.Text{Value: "aéé", PieceBytes: 2}, []string{"a", "é", "é"}},
		"wide characters":      {modelserver.Text{Value: "😀😀", PieceBytes: 2}, []string{"😀", "😀"}},
		"repeated": {modelserver.Text{Repeat: &modelserver.Repeat{Text: "ab", Bytes: 5}, PieceBytes: 4},
			[]string{"abab", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, modelserver.Always(modelserver.Reply{Steps: []modelserver.Step{{Text: &c.text}}}))
			_, body := send(t, http.MethodPost, url+chatPath, chat(user))
			var got []string
			for _, e := range events(t, body) {
				if text, _ := e.pick("choices", 0, "delta", "content").(string); text != "" {
					got = append(got, text)
				}
			}
			if strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestInvalidScriptIsRejected(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"unknown field":         {`rulez: []`, "rulez"},
		"unknown field of text": {`rules: [{reply: {steps: [{text: {valeu: a}}]}}]`, "valeu"},
		"unknown fact":          {`rules: [{reply: {steps: [{text: "{{.Madel}}"}]}}]`, "Madel"},
		"broken template":       {`rules: [{reply: {steps: [{text: "{{.Model"}]}}]`, "parse the template"},
		"two kinds of step":     {`rules: [{reply: {steps: [{text: a, reasoning: b}]}}]`, "exactly one of"},
		"two kinds of text": {`rules: [{reply: {steps: [{text: {value: a, chunks: [b]}}]}}]`,
			"one of value, chunks and repeat"},
		"unknown fault":       {`rules: [{reply: {fault: {kind: Flood}}}]`, "unknown fault kind"},
		"unknown problem":     {`rules: [{reply: {fault: {kind: Status, problem: Boredom}}}]`, "unknown problem"},
		"no status":           {`rules: [{reply: {fault: {kind: Status}}}]`, "needs the status"},
		"a good status":       {`rules: [{reply: {fault: {kind: Status, status: 200}}}]`, "needs the status"},
		"unknown finish":      {`rules: [{reply: {finish: Bored}}]`, "unknown finish"},
		"unknown protocol":    {`rules: [{match: {protocol: gopher}}]`, "unknown protocol"},
		"a duration in words": {`rules: [{reply: {delayBefore: soon}}]`, "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := modelserver.Parse([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}
