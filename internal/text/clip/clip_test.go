// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package clip

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley.dev/parley/test/kit/check"
)

func TestATextIsCutBetweenCharacters(t *testing.T) {
	for name, c := range map[string]struct {
		cut  func(string, int) string
		text string
		want []string // for n = 0, 1, 2 and so on
	}{
		"bytes":                     {Bytes, "aé€", []string{"", "a", "a", "aé", "aé", "aé", "aé€", "aé€"}},
		"bytes of a wide character": {Bytes, "🙂b", []string{"", "", "", "", "🙂", "🙂b"}},
		"bytes that are no UTF-8": {Bytes, "\x80\x80\x80\x80\x80\x80",
			[]string{"", "\x80", "\x80\x80", "\x80\x80\x80", "\x80\x80\x80\x80", "\x80\x80\x80\x80\x80"}},
		"a character broken off":  {Bytes, "\xf0\x9fab", []string{"", "\xf0", "\xf0\x9f", "\xf0\x9fa", "\xf0\x9fab"}},
		"the last bytes":          {LastBytes, "€éa", []string{"", "a", "a", "éa", "éa", "éa", "€éa", "€éa"}},
		"the last wide character": {LastBytes, "b🙂", []string{"", "", "", "", "🙂", "b🙂"}},
		"the last, no UTF-8":      {LastBytes, "a\x80\x80", []string{"", "\x80", "\x80\x80", "a\x80\x80"}},
		"runes":                   {Runes, "aé€🙂", []string{"", "a", "aé", "aé€", "aé€🙂", "aé€🙂"}},
		"runes that are no UTF-8": {Runes, "a\x80b", []string{"", "a", "a\x80", "a\x80b"}},
		"an ellipsis":             {Ellipsis, "aé€🙂", []string{"", "…", "a…", "aé…", "aé€🙂", "aé€🙂"}},
		"an ellipsis of one":      {Ellipsis, "é", []string{"", "é", "é"}},
		"nothing":                 {Ellipsis, "", []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			for n, want := range c.want {
				check.Equal(t, "result", want, c.cut(c.text, n))
			}
			check.Equal(t, "result", "", c.cut(c.text, -1))
		})
	}
}

func FuzzWhatIsCutFitsAndStaysValid(f *testing.F) {
	f.Add("aé€🙂", 3)
	f.Add("\xf0\x9f\x80", 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		room := max(0, n)
		runes := utf8.RuneCountInString(text)
		first, last, whole, short := Bytes(text, n), LastBytes(text, n), Runes(text, n), Ellipsis(text, n)
		if !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) || !strings.HasPrefix(text, whole) ||
			!strings.HasPrefix(text, strings.TrimSuffix(short, "…")) {
			t.Errorf("%q cut at %d is %q, %q, %q, %q", text, n, first, last, whole, short)
		}
		for _, cut := range []string{first, last} {
			if len(cut) > room || len(text) > room && len(cut) <= room-utf8.UTFMax {
				t.Errorf("%q has %d bytes, of at most %d", cut, len(cut), room)
			}
		}
		for _, cut := range []string{whole, short} {
			check.Equal(t, "result", min(room, runes), utf8.RuneCountInString(cut))
		}
		for _, cut := range []string{first, last, whole, short} {
			if utf8.ValidString(text) && !utf8.ValidString(cut) {
				t.Errorf("%q cut at %d is not valid: %q", text, n, cut)
			}
		}
	})
}
