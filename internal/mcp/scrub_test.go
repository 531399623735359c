// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import "testing"

func TestSecretsAreTakenOutOfTexts(t *testing.T) {
	s := newScrubber([]string{"token-0123456789", "token-0123456789-and-more", "short", `quote"d-secret`})
	for text, want := range map[string]string{
		"nothing":                          "nothing",
		"it is token-0123456789.":          "it is [secret].",
		"it is token-0123456789-and-more!": "it is [secret]!",
		"short ones stay":                  "short ones stay",
		`{"key":"quote\"d-secret"}`:        `{"key":"[secret]"}`,
		`plain quote"d-secret`:             "plain [secret]",
	} {
		if got := s.scrub(text); got != want {
			t.Errorf("of %q is left %q, want %q", text, got, want)
		}
	}
	if got := newScrubber(nil).scrub("as it is"); got != "as it is" {
		t.Errorf("without secrets the text becomes %q", got)
	}
}
