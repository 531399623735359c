// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"regexp"
	"strconv"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// limitPhrases are how providers say how many tokens the model's context holds, in small letters: OpenAI, vLLM and
// OpenRouter; xAI; llama.cpp; Google; Anthropic; Mistral; Groq and Cerebras.
var limitPhrases = regexp.MustCompile(
	`(?:maximum context length (?:is|of)|maximum prompt length is|available context size \(|` +
		`maximum number of tokens allowed \(|tokens >|maximum context length of|context window of|max_model_len (?:is|of)?|` +
		`limit is|limit of)\s*([0-9][0-9,_]{2,11})`)

// limit is how many tokens the provider says that the model's context holds; 0: it does not say, or nothing that can
// be.
func (f *findings) limit() int64 {
	var tokens int64
	if m := limitPhrases.FindStringSubmatch(f.text); m != nil {
		tokens, _ = strconv.ParseInt(strings.NewReplacer(",", "", "_", "").Replace(m[1]), 10, 64) // 0 is nothing that can be.
	}
	if tokens < v1alpha1.MinContextLimit || tokens > v1alpha1.MaxContextLimit {
		return 0
	}
	return tokens
}
