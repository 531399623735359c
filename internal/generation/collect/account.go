// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// maxWarnings and maxWarningBytes are limits of a ChatMessage.
const maxWarnings, maxWarningBytes = 16, 256

// addWarnings adds the warnings about settings, each once. The others are about repairs of the prompt.
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

// warningOf names the setting as the ChatModelConfig does, and not as the protocol.
func warningOf(w fantasy.CallWarning) string {
	return clip.Bytes(settingOf(w.Setting)+" was left out: "+cmp.Or(w.Details, "the provider does not take it"),
		maxWarningBytes)
}

// settingOf converts top_k, topK or TopK to topK.
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

// maxCount limits each count, so that sums do not overflow: to a thousand of the largest contexts.
const maxCount = 1_000_000_000

// usageOf converts the counts of a provider: input excludes tokens from and to the cache, output includes reasoning,
// and the total is the sum. Google counts the cache as input. If the total is the only count, it stays. Each count is
// at least 0 and at most maxCount.
func usageOf(provider v1beta1.ModelProvider, u fantasy.Usage) v1beta1.TokenUsage {
	for _, count := range []*int64{&u.InputTokens, &u.OutputTokens, &u.TotalTokens, &u.ReasoningTokens, &u.CacheReadTokens,
		&u.CacheCreationTokens} {
		*count = min(max(0, *count), maxCount)
	}
	if provider == v1beta1.ProviderGoogle {
		u.InputTokens = max(0, u.InputTokens-u.CacheReadTokens)
	}
	if u.InputTokens+u.CacheReadTokens+u.CacheCreationTokens+u.OutputTokens == 0 {
		return v1beta1.TokenUsage{ReasoningTokens: u.ReasoningTokens, TotalTokens: max(0, u.TotalTokens)}
	}
	return v1beta1.TokenUsage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheCreationTokens,
		TotalTokens: u.InputTokens + u.CacheReadTokens + u.CacheCreationTokens + u.OutputTokens,
	}
}

// maxLine limits the runes of a line, of which unprintable ones are omitted.
const maxLine = 4 * v1beta1.MaxLastReplyRunes

// preview is the first printable line of a text.
type preview struct {
	runes []rune
	done  bool
}

func (p *preview) add(text string) {
	for _, c := range text {
		switch {
		case p.done:
			return
		case strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", c):
			if p.done = p.line() != ""; !p.done {
				p.runes = p.runes[:0]
			}
		case len(p.runes) == 0 && c == ' ':
		default:
			p.runes = append(p.runes, c)
			p.done = len(p.runes) > maxLine
		}
	}
}

func (p *preview) line() string { return printable.Line(string(p.runes)) }

// String is the preview, cut to the width of a column.
func (p *preview) String() string { return clip.Ellipsis(p.line(), v1beta1.MaxLastReplyRunes) }
