// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

const secret = `pa<ss"wörd/2026`

func newText(t *testing.T) *Text {
	t.Helper()
	text, err := New(secret)
	check.OK(t, err)
	return text
}

func TestTextIsRemovedInEachForm(t *testing.T) {
	t.Parallel()
	inJSON, err := json.Marshal(map[string]string{"key": secret})
	check.OK(t, err)
	for name, c := range map[string]struct{ in, want string }{
		"plain":           {"it is " + secret + ", and " + secret + ".", "it is [redacted], and [redacted]."},
		"in JSON":         {string(inJSON), `{"key":"[redacted]"}`},
		"in plain JSON":   {`{"key":"pa<ss\"wörd/2026"}`, `{"key":"[redacted]"}`},
		"in a query":      {"?p=pa%3Css%22w%C3%B6rd%2F2026&q=1", "?p=[redacted]&q=1"},
		"in a Secret":     {"password: " + base64.StdEncoding.EncodeToString([]byte(secret)), "password: [redacted]="},
		"with a newline":  {base64.StdEncoding.EncodeToString([]byte(secret + "\n")), "[redacted]"},
		"clipped":         {"it is pa<ss\"…", "it is ******…"},
		"in JSON in JSON": {`{"body":"{\"key\":\"pa<ss\\\"wörd/2026\"}"}`, `{"body":"{\"key\":\"[redacted]\"}"}`},
		"in ASCII":        {`{"key":"pa<ss\"w\u00f6rd/2026"}`, `{"key":"[redacted]"}`},
		"in upper case":   {`{"key":"pa\u003Css\u0022w\u00F6rd/2026"}`, `{"key":"[redacted]"}`},
		"with slashes":    {`{"key":"pa<ss\"wörd\/2026","n":"\n"}`, `{"key":"[redacted]","n":"\n"}`},
		"in ASCII twice":  {`{"body":"{\"key\":\"pa<ss\\\"w\\u00f6rd/2026\"}"}`, `{"body":"{\"key\":\"[redacted]\"}"}`},
		"in a path":       {"/p%3css%22/pa%3css%22w%c3%b6rd%2f2026/100%/%", "/p%3css%22/[redacted]/100%/%"},
		"half escaped":    {`pa<ss"w%C3%B6rd/2026\`, `[redacted]\`},
		"clipped shortly": {"it is pa<…", "it is pa<…"},
		"a part of it":    {"it is pa<ss", "it is pa<ss"},
		"nothing":         {"it is fine", "it is fine"},
	} {
		got := newText(t).Replace(c.in)
		if strings.TrimRight(got, "=") != strings.TrimRight(c.want, "=") {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A text that has escapes itself is compared without them, too.
func TestEscapedTextsAreRemovedAndOthersStay(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct{ in, want string }{
		`domain\user\new`:    {`{"a":"domain\\user\\new","b":"domain\\user"}`, `{"a":"[redacted]","b":"domain\\user"}`},
		"secret 😀":           {`secret \ud83d\ude00, secret \ud83d`, `[redacted], secret \ud83d`},
		"line 1\nline 2":     {`{"a":"line 1\nline 2","b":"line 1\\nline 3"}`, `{"a":"[redacted]","b":"line 1\\nline 3"}`},
		`\\\\\\\\`:           {`{"a":"b\\c"}`, `{"a":"b\\c"}`},
		"%41%42%43":          {`\tABC and %41%42%43`, `\tABC and *********`},
		`ends with a \`:      {`{"a":"ends with a \\"}`, `{"a":"[redacted]"}`},
		`"quoted" at "ends"`: {`{"a":"\"quoted\" at \"ends\""}`, `{"a":"[redacted]"}`},
	} {
		removed, err := New(text)
		check.OK(t, err)
		check.Equal(t, text, c.want, removed.Replace(c.in))
	}
}

func TestReplacementIsNoLongerThanTheText(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"secret", "secrets", "longersecret"} {
		text, err := New(value)
		check.OK(t, err)
		if got := text.Replace(value); len(got) > len(value) || text.In(got) {
			t.Errorf("%q became %q", value, got)
		}
	}
	for _, value := range []string{"", "short", "    a    "} {
		if _, err := New(value); err == nil {
			t.Errorf("%q is accepted", value)
		}
	}
}

func TestFieldsThatIdentifyStayAndAreFound(t *testing.T) {
	t.Parallel()
	text, err := New("call-secret")
	check.OK(t, err)
	object := map[string]any{"spec": map[string]any{
		"chatRef": map[string]any{"name": "call-secret"},
		"parts": []any{
			map[string]any{"type": "Reasoning", "text": "of call-secret", "providerMetadata": `{"signature":"x"}`},
			map[string]any{"type": "Reasoning", "text": "of nothing", "providerMetadata": `{"signature":"y"}`},
			map[string]any{"type": "Text", "text": "fine", "providerMetadata": `{"of":"call-secret"}`},
			map[string]any{"type": "File", "file": map[string]any{
				"data": base64.StdEncoding.EncodeToString([]byte("in a file: call-secret"))}},
			map[string]any{"type": "ToolCall", "toolCall": map[string]any{"id": "call-secret", "input": `["call-secret"]`}},
		},
	}}
	spec := object["spec"].(map[string]any)
	changed := text.Fields("spec", spec)
	slices.Sort(changed)
	check.Equal(t, "changed", []string{"spec.parts.file.data", "spec.parts.providerMetadata", "spec.parts.text",
		"spec.parts.toolCall.input"}, slices.Compact(changed))
	check.Equal(t, "still in", []string{"spec.chatRef.name", "spec.parts.toolCall.id"}, text.Find("", object))
	check.Equal(t, "the parts", []any{
		map[string]any{"type": "Reasoning", "text": "of [redacted]"},
		map[string]any{"type": "Reasoning", "text": "of nothing", "providerMetadata": `{"signature":"y"}`},
		map[string]any{"type": "Text", "text": "fine"},
		map[string]any{"type": "File", "file": map[string]any{
			"data": base64.StdEncoding.EncodeToString([]byte("in a file: [redacted]"))}},
		map[string]any{"type": "ToolCall", "toolCall": map[string]any{"id": "call-secret", "input": `["[redacted]"]`}},
	}, spec["parts"].([]any))
}

func TestClippedTextAloneIsFound(t *testing.T) {
	t.Parallel()
	chat := map[string]any{"status": map[string]any{"lastReply": `The password is pa<ss"wör…`}}
	check.Equal(t, "found", []string{"status.lastReply"}, newText(t).Find("", chat))
}

func TestFinalQuoteKeepsJSONValid(t *testing.T) {
	t.Parallel()
	text, err := New(`secret-2026"`)
	check.OK(t, err)
	if got := text.Replace(`{"key":"secret-2026\""}`); !json.Valid([]byte(got)) || strings.Contains(got, "secret") {
		t.Errorf("got %s", got)
	}
}

func TestCharactersAreReplacedByAsMany(t *testing.T) {
	t.Parallel()
	text, err := New("山田太郎")
	check.OK(t, err)
	check.Equal(t, "replaced", "名前は****です", text.Replace("名前は山田太郎です"))
}
