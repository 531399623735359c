// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// Subject is what an error is about, for its message.
type Subject struct {
	// Config is the name of the ChatModelConfig.
	Config string
	// Spec of the ChatModelConfig.
	Spec *v1alpha1.ChatModelConfigSpec
	// Key is the API key, so that it can be kept out of the message.
	Key string
	// Private are the texts of the prompt, so that a provider that quotes one is not quoted in turn.
	Private []string
}

// Classify says what an error of a call means and what to do about it. The message holds of the provider's words at most
// the error message that its protocol defines, shortened and without anything that looks like a key; never the request, a
// header, a URL or a raw body, which can hold the key or the prompt.
func Classify(err error, about Subject) *v1alpha1.GenerationError {
	f := find(err, about.Spec.Provider)
	reason := reasonOf(f)
	return &v1alpha1.GenerationError{
		Reason: reason, Provider: string(about.Spec.Provider), StatusCode: int32(f.status),
		Message: clip(explain(reason, f, about), 1000),
	}
}

// findings are what is known of an error.
type findings struct {
	status int
	// contextTooLong, unauthenticated and brokenOff are what fantasy or the network make out.
	contextTooLong, unauthenticated, brokenOff bool
	// said is the provider's own error message, code its own name for the error.
	said, code string
}

func find(err error, from v1alpha1.ModelProvider) findings {
	f := findings{brokenOff: brokenOff(err)}
	if e, ok := errors.AsType[*fantasy.ProviderError](err); ok {
		f.status, f.contextTooLong, f.unauthenticated = e.StatusCode, e.IsContextTooLarge(), e.AuthError
		f.said, f.code = decodeError(e.ResponseBody)
		if from == v1alpha1.ProviderGoogle && e.StatusCode != 0 {
			f.said = string(e.ResponseBody) // its SDK has taken the message out of the body
		}
	}
	if e, ok := errors.AsType[*fantasy.Error](err); ok {
		f.said, f.code = decodeResponsesError(e)
	}
	return f
}

// brokenOff tells whether the network, and not the provider, ended the call. Cancellation is the network's too: the
// caller looks at its own contexts first, so that it was the peer who cancelled.
func brokenOff(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) ||
		errors.Is(err, syscall.ECONNRESET) || fantasy.IsTransportError(err)
}

// reasonRules: the first that matches wins.
var reasonRules = []struct {
	reason  v1alpha1.ErrorReason
	matches func(findings) bool
}{
	{v1alpha1.ErrorContextTooLong, func(f findings) bool {
		return f.contextTooLong || f.is("context_length_exceeded", "exceed_context_size_error") || f.says("prompt is too long")
	}},
	{v1alpha1.ErrorOverloaded, func(f findings) bool { return f.status == 529 || f.code == "overloaded_error" }},
	{v1alpha1.ErrorUsageLimitReached, func(f findings) bool {
		return f.status == http.StatusPaymentRequired || f.is("insufficient_quota", "billing_error") || f.says("credit balance is too low")
	}},
	{v1alpha1.ErrorAuthenticationFailed, func(f findings) bool {
		return f.status == http.StatusUnauthorized || f.unauthenticated || f.is("authentication_error", "invalid_api_key") || f.says("api key not valid")
	}},
	{v1alpha1.ErrorPermissionDenied, func(f findings) bool { return f.status == http.StatusForbidden || f.code == "permission_error" }},
	{v1alpha1.ErrorRateLimited, func(f findings) bool {
		return f.status == http.StatusTooManyRequests || f.is("rate_limit_error", "rate_limit_exceeded")
	}},
	{v1alpha1.ErrorProviderUnavailable, func(f findings) bool {
		return slices.Contains([]int{http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, f.status)
	}},
	{v1alpha1.ErrorRequestRejected, func(f findings) bool { return f.status >= 400 && f.status < 500 }},
	{v1alpha1.ErrorProviderUnavailable, func(f findings) bool { return f.status == 0 && f.said == "" && f.brokenOff }},
	// What is left is a provider that failed, or that sent what nobody understands.
	{v1alpha1.ErrorProviderError, func(findings) bool { return true }},
}

// is tells whether the provider's name for the error is one of these.
func (f findings) is(codes ...string) bool { return slices.Contains(codes, f.code) }

// says tells whether the provider's message has these words in it.
func (f findings) says(words string) bool { return strings.Contains(strings.ToLower(f.said), words) }

func reasonOf(f findings) v1alpha1.ErrorReason {
	for _, rule := range reasonRules {
		if rule.matches(f) {
			return rule.reason
		}
	}
	return v1alpha1.ErrorInternal
}

// advice says for each reason what is wrong and what to do. {provider}, {model}, {config}, {status} and {key} stand for
// what they name; {status} is the HTTP status in parentheses, or nothing.
var advice = map[v1alpha1.ErrorReason]string{
	v1alpha1.ErrorAuthenticationFailed: "{provider} refused the API key of ChatModelConfig {config}{status}. {key}, then send a message to go on",
	v1alpha1.ErrorPermissionDenied:     "The API key of ChatModelConfig {config} may not use model {model}{status}. Grant it at {provider}, or name another model, then send a message to go on",
	v1alpha1.ErrorUsageLimitReached:    "The quota or credit at {provider} is used up{status}. Check billing there, then send a message to go on",
	v1alpha1.ErrorRateLimited:          "{provider} limits the rate of requests{status}. Wait a little, then send a message to go on",
	v1alpha1.ErrorOverloaded:           "{provider} has no capacity at the moment{status}. Wait a little, then send a message to go on",
	v1alpha1.ErrorContextTooLong:       "The conversation no longer fits the context window of model {model}{status}. Start a new chat, or name a model with a larger one",
	v1alpha1.ErrorRequestRejected:      "{provider} rejected the request{status}: check model and settings of ChatModelConfig {config}, then send a message to go on",
	v1alpha1.ErrorProviderUnavailable:  "{provider} cannot be reached or broke off its answer{status}: check baseURL of ChatModelConfig {config} and the network, then send a message to go on",
	v1alpha1.ErrorProviderError:        "{provider} failed{status}. Send a message to try again",
}

func explain(reason v1alpha1.ErrorReason, f findings, about Subject) string {
	status := ""
	if f.status != 0 {
		status = fmt.Sprintf(" (%d)", f.status)
	}
	text := strings.NewReplacer(
		"{provider}", string(about.Spec.Provider), "{model}", about.Spec.Model, "{config}", about.Config,
		"{status}", status, "{key}", putKey(about.Spec),
	).Replace(advice[reason])
	if said := scrub(f.said, about.Key); said != "" && reason != v1alpha1.ErrorAuthenticationFailed && !quotes(f.said, about.Private) {
		text += ". It said: " + clip(said, 300)
	}
	return text
}

func putKey(spec *v1alpha1.ChatModelConfigSpec) string {
	if spec.APIKey == nil {
		return "Name a key in spec.apiKey"
	}
	ref := spec.APIKey.SecretKeyRef
	return fmt.Sprintf("Put a valid key into key %q of Secret %s", ref.Key, ref.Name)
}

// secretLike is what API keys and tokens look like: a long run of characters that no word has.
var secretLike = regexp.MustCompile(`(?i)(bearer\s+\S+|\b(sk|pk|key|xai|gsk|AIza|ghp|hf)[-_]?[A-Za-z0-9_*.-]{6,}|[A-Za-z0-9_+/=*-]{28,})`)

func scrub(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[redacted]")
	}
	return secretLike.ReplaceAllString(text, "[redacted]")
}

func clip(text string, runes int) string {
	if r := []rune(text); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return text
}
