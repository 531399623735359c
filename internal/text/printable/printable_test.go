// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"parley.dev/parley/test/kit/check"
)

// hostile is what models, tools and people may write, with what is shown of it.
var hostile = map[string]struct{ text, escaped, line string }{
	"plain text":                   {"Grüße, 世界\n\tdone", "Grüße, 世界\n\tdone", "Grüße, 世界 done"},
	"colours":                      {"\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`, "[31mred [0m"},
	"a window's title":             {"a\x1b]0;owned\a b", `a\u001b]0;owned\u0007 b`, "a ]0;owned b"},
	"the clipboard by one byte":    {"\u009d52;c;aGk=\u009c", `\u009d52;c;aGk=\u009c`, "52;c;aGk="},
	"a byte that is C1 in Latin-1": {"a\x9b2Jb", `a\x9b2Jb`, "a2Jb"},
	"backspaces":                   {"safe\b\b\b\bevil\x7f", `safe\u0008\u0008\u0008\u0008evil\u007f`, "safe evil"},
	"a lone carriage return":       {"first\rsecond", `first\u000dsecond`, "first second"},
	"lines of Windows":             {"a\r\nb\r\n", "a\nb\n", "a b"},
	"a text that reads backwards":  {"rm \u202e-fr\u202c x", `rm \u202e-fr\u202c x`, "rm -fr x"},
	"isolates and marks":           {"\u2066a\u2069\u200e\u200f\u061c", `\u2066a\u2069\u200e\u200f\u061c`, "a"},
	"no width":                     {"pa\u200bss\u2060wo\ufeffrd\u00ad", `pa\u200bss\u2060wo\ufeffrd\u00ad`, "password"},
	"separators":                   {"a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`, "a b c d"},
	"tags":                         {"x\U000e0041\U000e0001", `x\U000e0041\U000e0001`, "x"},
	"fillers":                      {"a\u3164\u115fb\u034f", `a\u3164\u115fb\u034f`, "ab"},
	"private use":                  {"\ue0b0\U000f0000", `\ue0b0\U000f0000`, ""},
	"noncharacters":                {"\ufdd0\U0001ffff", `\ufdd0\U0001ffff`, ""},
	"invalid bytes":                {"a\xff\xc3(b\xe2\x82", `a\xff\xc3(b\xe2\x82`, "a(b"},
	"a family": {"👩\u200d👩\u200d👧 ❤️\u200d🔥", "👩\u200d👩\u200d👧 ❤️\u200d🔥",
		"👩\u200d👩\u200d👧 ❤️\u200d🔥"},
	"Persian and Hindi":         {"می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"},
	"joiners that join nothing": {"a\u200db \u200c👩\u200d\u200d", "a\\u200db \\u200c👩\u200d\\u200d", "ab 👩\u200d"},
	"an Arabic number sign":     {"\u0600123", "\u0600123", "\u0600123"},
	"a replacement character":   {"a\ufffdb", "a\ufffdb", "a\ufffdb"},
	"the name of an escape":     {`\u001b`, `\u001b`, `\u001b`},
}

func TestTerminalControlCharactersAreEscapedOrRemoved(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "result", c.escaped, Escape(c.text))
			check.Equal(t, "result", c.line, Line(c.text))
		})
	}
}

func TestATextKeepsItsLines(t *testing.T) {
	if got, want := Text("a\r\nb\x1b[2J\r\tc\u2028d\u200b\x07\n"), "a\nb[2J\n\tc\nd\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// readable reports whether a terminal only shows the runes of a text, independently of the code under test.
func readable(text string) bool {
	for _, r := range text {
		formats := r == '\u200c' || r == '\u200d' || unicode.Is(unicode.Prepended_Concatenation_Mark, r)
		switch {
		case r == '\n' || r == '\t' || formats:
		case r < ' ', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029', unicode.Is(unicode.Cf, r),
			unicode.Is(unicode.Co, r):
			return false
		}
	}
	return utf8.ValidString(text) && !strings.Contains(text, "\u200d\u200d") && !strings.Contains(text, "\u200c\u200c")
}

func FuzzNothingButReadableCharactersComesOut(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.text, 3)
	}
	f.Add("\xf0\x9f\x91\xa9\u200d\r", 2)
	f.Fuzz(func(t *testing.T, text string, at int) {
		escaped := Escape(text)
		line, kept := Line(text), Text(text)
		for _, got := range []string{escaped, line, kept} {
			if !readable(got) {
				t.Fatalf("%q became %q", text, got)
			}
		}
		if strings.ContainsAny(line, "\n\t") || Line(line) != line || Text(kept) != kept || Escape(escaped) != escaped {
			t.Errorf("%q is not the same the second time, or no line: %q, %q, %q", text, line, kept, escaped)
		}
		at = max(0, min(at, len(text)))
		var pieces Escaper
		check.Equal(t, text, escaped, pieces.Add(text[:at])+pieces.Add(text[at:])+pieces.End())
		var single strings.Builder
		for i := range len(text) {
			single.WriteString(pieces.Add(text[i : i+1]))
		}
		check.Equal(t, text, escaped, single.String()+pieces.End())
	})
}

func FuzzJSONSaysTheSame(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var raw bytes.Buffer
		encoder := json.NewEncoder(JSONWriter(&raw))
		encoder.SetEscapeHTML(false)
		check.OK(t, encoder.Encode(map[string]string{text: text}))
		if !readable(raw.String()) {
			t.Fatalf("%q became %s", text, raw.String())
		}
		var back map[string]string
		want := strings.ToValidUTF8(text, "\ufffd")
		if err := json.Unmarshal(raw.Bytes(), &back); err != nil || strings.ToValidUTF8(back[want], "?") != back[want] {
			t.Fatalf("%q became %s: %v", text, raw.String(), err)
		}
		if utf8.ValidString(text) && back[text] != text {
			t.Errorf("%q came back as %q", text, back[text])
		}
	})
}
