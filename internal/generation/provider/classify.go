// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"math"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/clip"
)

// Subject is what an error is about.
type Subject struct {
	// Config is the name of the ChatModelConfig.
	Config string
	// Spec of the ChatModelConfig.
	Spec *v1alpha1.ChatModelConfigSpec
	// Key is the API key, so that it can be kept out of the message.
	Key string
	// Private are the texts of the prompt, so that a provider that quotes one is not quoted in turn.
	Private []string
	// Now is the time, which dates of the provider are compared with. Zero: they are not read.
	Now time.Time
	// Silence is how long the provider had sent nothing when the call was given up for that. 0: it was not.
	Silence time.Duration
	// HTTP is what the HTTP answer said of itself, see WithHTTPNotes; nil: nobody has looked.
	HTTP *HTTPNotes
	// Canceled is whether the caller's own context ended the call, for another reason than silence.
	Canceled bool
}

// maxText is the most characters of a message, and of an advice, as the API bounds them.
const maxText = 1024

// Classify says what an error of a call means, whether the same call may succeed later, and what to do about it. The
// message holds of the provider's words at most the error message that its protocol defines, shortened and without
// anything that looks like a key or quotes the prompt; never the request, a header, a URL or a raw body, which can hold
// the key or the prompt.
func Classify(err error, about Subject) *v1alpha1.GenerationError {
	f := find(err, about)
	r := ruleOf(f)
	why := explain(r, f, about)
	e := &v1alpha1.GenerationError{
		Reason: r.reason, Provider: string(about.Spec.Provider), StatusCode: int32(f.status),
		Retryable: r.retryable(f), Message: clip.Ellipsis(why.wrong, maxText), Advice: clip.Ellipsis(why.advice, maxText),
	}
	if e.Reason == v1alpha1.ErrorContextTooLong {
		e.ContextLimit = f.limit()
	}
	if e.Retryable && f.wait > 0 {
		e.RetryAfterSeconds = new(int32(math.Ceil(f.wait.Seconds())))
	}
	return e
}

// ruleOf is the first rule that matches. The last one matches everything.
func ruleOf(f *findings) *rule {
	for i := range rules {
		if rules[i].matches(f) {
			return &rules[i]
		}
	}
	return &rules[len(rules)-1]
}

// retryable lets a provider that says whether to try again be right, where it can know better than the table.
func (r *rule) retryable(f *findings) bool {
	if f.shouldRetry == nil || *f.shouldRetry && r.again == never {
		return r.again == always
	}
	return *f.shouldRetry
}
