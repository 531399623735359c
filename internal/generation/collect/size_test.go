// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
)

// BenchmarkAccumulator collects a reply of 10000 deltas of four bytes;
// its time per delta must not depend on their number.
func BenchmarkAccumulator(b *testing.B) {
	delta := text("0", "abc ")
	for b.Loop() {
		a := collect.NewAccumulator(v1alpha1.ProviderOpenAI, 1, nil)
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
		a := collect.NewAccumulator(v1alpha1.ProviderAnthropic, 3, []string{"call"})
		long := strings.Repeat(content, int(repeat)%5000+1)
		for range v1alpha1.MaxParts {
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
