// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

func TestTruncateKeepsShortTextsAndShortensLongOnes(t *testing.T) {
	for _, text := range []string{"", strings.Repeat("a", 1000), strings.Repeat("a", 1001), strings.Repeat("ä", 5000),
		strings.Repeat("語", 5000), strings.Repeat("😀", 5000), strings.Repeat("aä語😀", 3000)} {
		// Each limit moves the cuts by some bytes, so that they fall into every place of a character.
		for limit := 1000; limit < 1012; limit++ {
			got := tools.Truncate(text, limit)
			if len(text) <= limit && got != text || len(got) > limit || !utf8.ValidString(got) ||
				len(text) > limit && len(got) < limit-300 {
				t.Fatalf("limit %d: of %d bytes of %.8q, got %d: %q", limit, len(text), text, len(got), got)
			}
		}
	}
}

func TestTruncateKeepsBothEndsAndReportsOmittedBytes(t *testing.T) {
	got := tools.Truncate("BEGIN"+strings.Repeat("x", 10_000)+"END", 1000)
	// 1000 bytes less the marker's 256 are kept.
	check.InOrder(t, got, "BEGIN", "[... 9264 bytes left out ...]", "END")
	if !strings.HasPrefix(got, "BEGIN") || !strings.HasSuffix(got, "END") {
		t.Errorf("got %q", got)
	}
}

func TestResultLimitFollowsContext(t *testing.T) {
	for contextLimit, want := range map[int64]int{0: tools.MaxResultBytes, 4096: 16 << 10, 32_768: 32_768,
		200_000: tools.MaxResultBytes} {
		check.Equal(t, contextLimit, want, tools.ResultLimit(contextLimit))
	}
}
