// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley.dev/parley/internal/tools"
)

func TestTruncateKeepsShortTextsAndShortensLongOnes(t *testing.T) {
	for name, text := range map[string]string{
		"empty":            "",
		"exactly the most": strings.Repeat("a", 1000),
		"one byte more":    strings.Repeat("a", 1001),
		"of two bytes":     strings.Repeat("ä", 5000),
		"of three bytes":   strings.Repeat("語", 5000),
		"of four bytes":    strings.Repeat("😀", 5000),
		"of mixed lengths": strings.Repeat("aä語😀", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			// Each limit moves the cuts by some bytes, so that they fall into every place of a character.
			for limit := 1000; limit < 1012; limit++ {
				got := tools.Truncate(text, limit)
				if len(text) <= limit && got != text {
					t.Fatalf("limit %d: a text of %d bytes was changed", limit, len(text))
				}
				if len(got) > limit {
					t.Fatalf("limit %d: got %d bytes", limit, len(got))
				}
				if !utf8.ValidString(got) {
					t.Fatalf("limit %d: a character was cut in two", limit)
				}
				if len(text) > limit && len(got) < limit-300 {
					t.Fatalf("limit %d: only %d bytes are left", limit, len(got))
				}
			}
		})
	}
}

func TestTruncateKeepsBothEndsAndReportsOmittedBytes(t *testing.T) {
	text := "BEGIN" + strings.Repeat("x", 10_000) + "END"
	got := tools.Truncate(text, 1000)
	if !strings.HasPrefix(got, "BEGIN") || !strings.HasSuffix(got, "END") {
		t.Errorf("the ends are gone: %.20q … %q", got, got[len(got)-20:])
	}
	// 1000 bytes less the marker's 256 are kept.
	if want := "[... 9264 bytes left out ...]"; !strings.Contains(got, want) {
		t.Errorf("got no marker %q in %q", want, got)
	}
}

func TestTheLimitOfAResultFollowsTheContext(t *testing.T) {
	for contextLimit, want := range map[int64]int{0: tools.MaxResultBytes, 4096: 16 << 10, 32_768: 32_768,
		200_000: tools.MaxResultBytes} {
		if got := tools.ResultLimit(contextLimit); got != want {
			t.Errorf("%d tokens: %d bytes, want %d", contextLimit, got, want)
		}
	}
}
