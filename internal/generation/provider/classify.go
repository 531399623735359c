// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

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
}

// Classify says what an error of a call means and what to do about it. The message holds of the provider's words at most
// the error message that its protocol defines, shortened and without anything that looks like a key; never the request, a
// header, a URL or a raw body, which can hold the key or the prompt.
func Classify(err error, about Subject) *v1alpha1.GenerationError {
	f := findings{err: err}
	if provider, ok := errors.AsType[*fantasy.ProviderError](err); ok {
		f.status = provider.StatusCode
		f.contextTooLong = provider.IsContextTooLarge()
		f.said, f.code = decodeError(provider.ResponseBody)
	}
	reason := reasonOf(f)
	return &v1alpha1.GenerationError{
		Reason: reason, Provider: string(about.Spec.Provider), StatusCode: int32(f.status),
		Message: clip(explain(reason, f, about), 1000),
	}
}

// findings are what is known of an error.
type findings struct {
	err            error
	status         int
	contextTooLong bool
	// said is the provider's own error message, code its own name for the error.
	said, code string
}

// reasonRules: the first that matches wins.
var reasonRules = []struct {
	reason  v1alpha1.ErrorReason
	matches func(findings) bool
}{
	{v1alpha1.ErrorContextTooLong, func(f findings) bool { return f.contextTooLong || f.code == "context_length_exceeded" }},
	{v1alpha1.ErrorOverloaded, func(f findings) bool { return f.status == 529 || f.code == "overloaded_error" }},
	{v1alpha1.ErrorUsageLimitReached, func(f findings) bool {
		return f.status == http.StatusPaymentRequired || f.code == "insufficient_quota" || f.code == "billing_error"
	}},
	{v1alpha1.ErrorAuthenticationFailed, func(f findings) bool {
		return f.status == http.StatusUnauthorized || f.code == "authentication_error" || f.code == "invalid_api_key"
	}},
	{v1alpha1.ErrorPermissionDenied, func(f findings) bool { return f.status == http.StatusForbidden }},
	{v1alpha1.ErrorRateLimited, func(f findings) bool {
		return f.status == http.StatusTooManyRequests || f.code == "rate_limit_error"
	}},
	{v1alpha1.ErrorProviderUnavailable, func(f findings) bool {
		return slices.Contains([]int{http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, f.status)
	}},
	{v1alpha1.ErrorRequestRejected, func(f findings) bool { return f.status >= 400 && f.status < 500 }},
	{v1alpha1.ErrorProviderError, func(f findings) bool { return f.status >= 500 || f.said != "" }},
	// No answer at all: refused, reset, cut off, timed out.
	{v1alpha1.ErrorProviderUnavailable, func(findings) bool { return true }},
}

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
	if said := scrub(f.said, about.Key); said != "" && reason != v1alpha1.ErrorAuthenticationFailed {
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

// decodeError reads the error message and code from the body that the providers' protocols define; of anything else it
// takes nothing.
func decodeError(body []byte) (said, code string) {
	var envelope struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    any    `json:"code"`
		} `json:"error"`
	}
	if len(body) > 64<<10 || json.Unmarshal(bodyOf(body), &envelope) != nil {
		return "", ""
	}
	code, _ = envelope.Error.Code.(string)
	if code == "" {
		code = envelope.Error.Type
	}
	return envelope.Error.Message, code
}

// bodyOf strips the head that some SDKs keep in front of the body.
func bodyOf(raw []byte) []byte {
	if _, body, ok := strings.Cut(string(raw), "\r\n\r\n"); ok {
		return []byte(body)
	}
	return raw
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
