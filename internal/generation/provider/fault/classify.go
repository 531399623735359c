// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault explains errors of model calls, and what to do about them. Nothing that it returns contains a secret of
// the call or quotes the conversation, whatever the provider sends.
package fault

import (
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/clip"
)

// Subject is what an error is about.
type Subject struct {
	// Config is the name of the ChatModelConfig.
	Config string
	// Spec of the ChatModelConfig.
	Spec *v1beta1.ChatModelConfigSpec
	// Key is the API key, so that it can be kept out of the message.
	Key string
	// Private are the texts of the prompt, so that a provider that quotes one is not quoted in turn.
	Private []string
	// Now is the time, which dates of the provider are compared with. Zero: they are not read.
	Now time.Time
	// Silence is how long the provider had sent nothing when the call was canceled for that. 0: it was not.
	Silence time.Duration
	// HTTP has notes about the HTTP answer; nil: there are none.
	HTTP *httpguard.Notes
	// Canceled is whether the caller's own context ended the call, for another reason than silence.
	Canceled bool
}

// maxText is the most characters of a message, and of an advice, as the API bounds them.
const maxText = 1024

// Classify returns what an error of a call means, whether the same call may succeed later, and what to do about it. Of
// the provider's words, it contains at most the error message that the protocol defines, shortened and without anything
// that looks like a key or quotes the prompt. It never contains the request, a header, a URL or a raw body.
func Classify(err error, about Subject) *v1beta1.GenerationError {
	f := find(err, about)
	r := ruleOf(f)
	why := explain(r, f, about)
	e := &v1beta1.GenerationError{
		Reason: r.reason, Provider: string(about.Spec.Provider), StatusCode: int32(f.status),
		Retryable: r.isRetryable(f), Message: clip.Ellipsis(why.wrong, maxText), Advice: clip.Ellipsis(why.advice, maxText),
	}
	if e.Reason == v1beta1.ErrorContextTooLong {
		e.ContextLimit = f.limit()
	}
	if e.Retryable && f.wait > 0 {
		e.RetryAfterSeconds = new(int32(math.Ceil(f.wait.Seconds())))
	}
	return e
}

// HistoryRejected reports whether an error says that the messages that were sent do not belong together.
func HistoryRejected(err error, about Subject) bool { return isHistoryRejected(find(err, about)) }

// FileRefused reports whether an error can be about a file that was sent by URL, and returns the provider's message. An
// error about a file that was sent as content repeats without the URLs.
func FileRefused(err error, about Subject) (message string, refused bool) {
	f := find(err, about)
	if ruleOf(f).reason != v1beta1.ErrorRequestRejected ||
		!f.has(0, http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity) {
		return "", false
	}
	return f.message, f.tells("download", "fetch", "url", "image", "pdf", "document", "file", "media")
}

// ruleOf is the first rule that matches. The last one matches everything.
func ruleOf(f *findings) *rule {
	return &rules[slices.IndexFunc(rules, func(r rule) bool { return r.matches(f) })]
}

// isRetryable prefers what the provider says about retries, unless the table excludes them.
func (r *rule) isRetryable(f *findings) bool {
	if f.shouldRetry == nil || *f.shouldRetry && r.retry == retryNever {
		return r.retry == retryAlways
	}
	return *f.shouldRetry
}

// limitPhrases are how providers state how many tokens the model's context holds, in small letters: OpenAI, vLLM and
// OpenRouter; xAI; llama.cpp; Google; Anthropic; Mistral; Groq and Cerebras; newer vLLM, SGLang; Kimi.
var limitPhrases = regexp.MustCompile(
	`(?:maximum context length (?:is|of)|context length (?:is only|\()|maximum model length of|model token limit:|` +
		`maximum prompt length is|available context size \(|` +
		`maximum number of tokens allowed \(|tokens >|maximum context length of|context window of|max_model_len (?:is|of)?|` +
		`limit is|limit of)\s*([0-9][0-9,_]{2,11})`)

// limit is how many tokens the model's context holds according to the provider; 0: unknown, or out of range.
func (f *findings) limit() int64 {
	var tokens int64
	if m := limitPhrases.FindStringSubmatch(f.text + "\n" + f.cause); m != nil {
		tokens, _ = strconv.ParseInt(strings.NewReplacer(",", "", "_", "").Replace(m[1]), 10, 64) // 0 is out of range.
	}
	if tokens < v1beta1.MinContextLimit || tokens > v1beta1.MaxContextLimit {
		return 0
	}
	return tokens
}
