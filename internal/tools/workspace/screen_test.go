// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley.dev/parley/test/kit/check"
)

// written are outputs of commands, with what a person would be left with.
var written = map[string]struct{ raw, want string }{
	"plain text":                        {"Grüße, 世界\n\tdone", "Grüße, 世界\n\tdone"},
	"nothing":                           {"", ""},
	"lines of Windows":                  {"a\r\nb\r\n", "a\nb\n"},
	"several returns before a newline":  {"a\r\r\nb", "a\nb"},
	"a progress line":                   {"10%\r20%\r100%\ndone\n", "100%\ndone\n"},
	"a progress line that ends so":      {"10%\r20%\r", "20%"},
	"a progress line and its newline":   {"10%\r20%\r\n", "20%\n"},
	"a shorter state":                   {"downloading\rok\n", "ok\n"},
	"a wheel":                           {"|\b/\b-\b\\\bdone\n", "done\n"},
	"a wheel that is wiped":             {"working |\b \b\n", "working \n"},
	"more backspaces than characters":   {"a\b\b\bb\n", "b\n"},
	"backspaces over wide characters":   {"é世\b\bx\n", "x\n"},
	"overstruck letters of a manual":    {"N\bNA\bAM\bME\bE", "NAME"},
	"colours":                           {"\x1b[1;31merror\x1b[0m: x", "error: x"},
	"a sequence with intermediates":     {"a\x1b[?25h\x1b[3 q\x1b(Bb", "ab"},
	"a window's title ended by BEL":     {"a\x1b]0;owned\ab", "ab"},
	"a link ended by ST":                {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
	"the clipboard by C1":               {"a\u009d52;c;aGk=\u009cb", "ab"},
	"a control sequence by C1":          {"a\u009b31mb", "ab"},
	"a device control string":           {"a\x1bP1$r0m\x1b\\b", "ab"},
	"a string that is cancelled":        {"a\x1b]0;x\x1b[31mb", "ab"},
	"a string that is never ended":      {"a\x1b]0;x\nb", "a\nb"},
	"a string that is long":             {"a\x1b]" + strings.Repeat("x", maxString+5) + "b", "axxxxxb"},
	"a sequence that is broken":         {"a\x1b[31\nb", "a\nb"},
	"a sequence without an end":         {"a\x1b[" + strings.Repeat("1", maxControl+1) + "b", "a1b"},
	"an escape before a newline":        {"a\x1b\nb", "a\nb"},
	"two escapes":                       {"a\x1b\x1b[0mb", "ab"},
	"an escape at the end":              {"a\x1b", "a"},
	"half a sequence at the end":        {"a\x1b[3", "a"},
	"bells and other controls":          {"a\ab\x01c\x7fd\u0085e", "abcde"},
	"NULs":                              {"a\x00b", "a\ufffdb"},
	"bytes that are no UTF-8":           {"a\xff\xc3(b\xe2\x82", "a\ufffd\ufffd(b\ufffd\ufffd"},
	"a surrogate":                       {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
	"U+FFFD itself":                     {"\ufffd", "\ufffd"},
	"formats, which data may have":      {"a\u200db\u202ec", "a\u200db\u202ec"},
	"a return within a sequence's line": {"old\x1b[K\rnew\x1b[K\n", "new\n"},
}

func TestScreenShowsFinalStateOfEachLine(t *testing.T) {
	for name, c := range written {
		t.Run(name, func(t *testing.T) {
			var whole screen
			_, _ = whole.Write([]byte(c.raw))
			check.Equal(t, "result", c.want, whole.End(false))
			// Where the pieces end does not matter.
			var bytewise screen
			for i := range len(c.raw) {
				_, _ = bytewise.Write([]byte{c.raw[i]})
			}
			check.Equal(t, "byte by byte", c.want, bytewise.End(false))
		})
	}
}

func TestScreenTakeReturnsPiecesThatFormLines(t *testing.T) {
	var s screen
	took := ""
	for _, piece := range []string{"Down", "load", "ing\n10", "%\r", "20%", "\r30%", "\r\nok \xe4\xb8", "\x96\n"} {
		_, _ = s.Write([]byte(piece))
		took += s.Take() + "|"
	}
	// A state that was shown cannot be taken back: the next one begins a line.
	if want := "Down|load|ing\n10|%|\n20%|\n30%|\nok |世\n|"; took != want {
		t.Errorf("got  %q\nwant %q", took, want)
	}
	check.Equal(t, "left is", "", s.End(false))
}

func TestScreenShowsIncompleteCharacterOnlyAtFinalEnd(t *testing.T) {
	for cut, want := range map[bool]string{true: "a", false: "a\ufffd\ufffd"} {
		var s screen
		_, _ = s.Write([]byte("a\xe4\xb8"))
		check.Equal(t, cut, want, s.End(cut))
	}
}

func TestScreenShowsUnterminatedLineIncrementally(t *testing.T) {
	var s screen
	took := 0
	for range 100 {
		_, _ = s.Write([]byte(strings.Repeat("x", 10_000)))
		if len(s.line) > maxLine {
			t.Fatalf("a line of %d bytes is held", len(s.line))
		}
		took += len(s.Take())
	}
	check.Equal(t, "taken were bytes", 1_000_000, took)
}

// Security (a hostile workspace): cannot control or imitate a terminal, by output, names of files or errors. Also
// TestARefusalIsDecodedAndCleaned of internal/workspace/client; TestForeignTextNeitherControlsNorImitates,
// TestWorkIsShownAsPeopleKnowIt of internal/cli/render.
func FuzzScreenRemovesTerminalControlCharacters(f *testing.F) {
	for _, c := range written {
		f.Add([]byte(c.raw), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, at int) {
		var whole, split screen
		_, _ = whole.Write(raw)
		want := whole.End(false)
		at = max(0, min(at, len(raw)))
		_, _ = split.Write(raw[:at])
		_, _ = split.Write(raw[at:])
		check.Equal(t, at, want, split.End(false))
		if !utf8.ValidString(want) || strings.ContainsFunc(want, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
		}) {
			t.Errorf("passed is %q", want)
		}
	})
}
