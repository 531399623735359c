// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"charm.land/fantasy"

	"parley.dev/parley/internal/text/clip"
)

const (
	// maxWarnings is how many warnings a ChatMessage holds.
	maxWarnings = 16
	// maxWarningBytes is how long one of them is at most.
	maxWarningBytes = 256
)

// addWarnings adds the warnings about settings, each once. The others are about the shape of the prompt, which nobody
// can do anything about.
func addWarnings(warnings []string, more []fantasy.CallWarning) []string {
	for _, w := range more {
		if w.Type != fantasy.CallWarningTypeUnsupportedSetting || len(warnings) == maxWarnings {
			continue
		}
		if text := warningOf(w); !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

// warningOf names the setting as the ChatModelConfig does. Protocols name it as in their requests.
func warningOf(w fantasy.CallWarning) string {
	return clip.Bytes(settingOf(w.Setting)+" was left out: "+cmp.Or(w.Details, "the provider does not take it"),
		maxWarningBytes)
}

// settingOf is top_k, topK or TopK as topK.
func settingOf(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words {
		letters := []rune(word)
		if len(letters) == 0 {
			continue
		}
		letters[0] = unicode.ToUpper(letters[0])
		if i == 0 {
			letters[0] = unicode.ToLower(letters[0])
		}
		words[i] = string(letters)
	}
	return strings.Join(words, "")
}
