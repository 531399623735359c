// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	protocol "parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestRetryDelayOfGoogleIsInTheBody(t *testing.T) {
	const quota = `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generate_content_free_tier_requests","quotaId":"GenerateRequestsPer%ProjectPerModel-FreeTier","quotaValue":"5"}]},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.07s"}]}}`
	for name, c := range map[string]struct {
		status int
		body   string
		want   want
	}{
		"of a minute": {429, replaced(quota, "Minute"), want{v1beta1.ErrorRateLimited, true, 429, 35 * time.Second,
			"Wait"}},
		"of a day": {429, replaced(quota, "Day"), want{v1beta1.ErrorUsageLimitReached, false, 429, 0, "billing"}},
		"API disabled": {403,
			`{"error":{"code":403,"message":"Disabled.","status":"PERMISSION_DENIED","details":[{"reason":"SERVICE_DISABLED"}]}}`, want{v1beta1.ErrorProviderDisabled, false, 403, 0, ""}},
		"expired key": {400,
			`{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, want{v1beta1.ErrorAuthenticationFailed, false, 400, 0, ""}},
		"unknown model": {404,
			`{"error":{"code":404,"message":"models/x is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}`, want{v1beta1.ErrorModelNotFound, false, 404, 0, ""}},
		"a proxy's page": {502, "<html>" + providertest.Secret + "</html>",
			want{v1beta1.ErrorProviderUnavailable, true, 502, 0, ""}},
		"no error": {500, `{"what":"` + providertest.Secret + `"}`, want{v1beta1.ErrorProviderError, true, 500, 0, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := providertest.Canned{Status: c.status, Header: http.Header{"Content-Type": {"application/json"}},
				Body: []byte(c.body)}
			spec := providertest.Gemini.Spec("http://models.example/v1")
			err := providertest.Call(t, spec, &http.Client{Transport: answer})
			e := fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key,
				Private: []string{providertest.Secret}})
			c.want.check(t, e)
			check.Equal(t, "the message quotes", "", providertest.Leaked(e.Text(), providertest.Secret, "<html"))
		})
	}
}

func replaced(text, by string) string { return strings.ReplaceAll(text, "%", by) }

func TestRetryAfterIsReadWhateverItsForm(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		headers map[string]string
		message string
		want    int32
	}{
		"seconds":                 {headers: map[string]string{"Retry-After": "7"}, want: 7},
		"any case":                {headers: map[string]string{"rEtRy-aFtEr": "7"}, want: 7},
		"parts of a second":       {headers: map[string]string{"retry-after": "7.2"}, want: 8},
		"milliseconds come first": {headers: map[string]string{"Retry-After": "60", "retry-after-ms": "1500"}, want: 2},
		"a date": {headers: map[string]string{"Retry-After": "Sat, 21 Nov 2026 12:01:30 GMT"},
			want: 90},
		"a date that has passed":   {headers: map[string]string{"Retry-After": "Sat, 21 Nov 2026 11:01:30 GMT"}},
		"more than an hour":        {headers: map[string]string{"Retry-After": "86400"}, want: 3600},
		"more than a number holds": {headers: map[string]string{"Retry-After": "1e400"}},
		"infinitely":               {headers: map[string]string{"Retry-After": "Inf"}, want: 3600},
		"no number":                {headers: map[string]string{"Retry-After": "NaN"}},
		"negative":                 {headers: map[string]string{"Retry-After": "-5"}},
		"zero":                     {headers: map[string]string{"Retry-After": "0"}},
		"not clear": {headers: map[string]string{"X-Ratelimit-Reset-Requests": "20s",
			"X-Ratelimit-Reset-Tokens": "6m0s"}},
		"in words":                     {message: "Rate limit reached. Please try again in 1.242s. Visit the page.", want: 2},
		"in words, milliseconds":       {message: "Please try again in 120ms.", want: 1},
		"in words that are no seconds": {message: "Please try again in 5 minutes."},
		"a header before words": {headers: map[string]string{"Retry-After": "9"}, message: "Please try again in 20s.",
			want: 9},
	} {
		t.Run(name, func(t *testing.T) {
			answer := providertest.Canned{Status: 429, Header: http.Header{},
				Body: []byte(`{"error":{"message":"` + c.message + `"}}`)}
			for name, value := range c.headers {
				answer.Header.Set(name, value)
			}
			spec := providertest.Chat.Spec("http://models.example/v1")
			err := providertest.Call(t, spec, &http.Client{Transport: answer})
			e := fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Now: now})
			got := int32(0)
			if e.RetryAfterSeconds != nil {
				got = *e.RetryAfterSeconds
			}
			check.Equal(t, "result, retryable", []any{c.want, true}, []any{got, e.Retryable})
		})
	}
}

func TestBedrockErrorsAreNamedInHeaderOrEvent(t *testing.T) {
	spec := &v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderBedrock, Model: "some-model"}
	answered := func(status int, kind, message string) error {
		return providertest.Call(t, spec, &http.Client{Transport: providertest.Canned{Status: status,
			Header: http.Header{"X-Amzn-Errortype": {kind + ":http://internal.amazon.com/"}},
			Body:   []byte(`{"message":"` + message + `"}`)}})
	}
	inStream := func(kind, message string) error {
		return protocol.EventError([]byte(`{"error":{"type":"` + kind + `","message":"` + message + `"}}`))
	}
	for name, c := range map[string]struct {
		err  error
		want want
	}{
		"throttled": {answered(429, "ThrottlingException", "Too many requests"),
			want{v1beta1.ErrorRateLimited, true, 429, 0, "Too many requests"}},
		"no model": {answered(400, "ValidationException", "The provided model identifier is invalid."),
			want{v1beta1.ErrorModelNotFound, false, 400, 0, ""}},
		"no access": {answered(403, "AccessDeniedException",
			"You don't have access to the model with the specified model ID."),
			want{v1beta1.ErrorModelNotFound, false, 403, 0, ""}},
		"expired": {answered(403, "ExpiredTokenException",
			"The security token included in the request is expired"), want{v1beta1.ErrorAuthenticationFailed, false, 403, 0,
			""}},
		"too long": {answered(400, "ValidationException", "Input is too long for requested model."),
			want{v1beta1.ErrorContextTooLong, false, 400, 0, ""}},
		"throttled in a stream": {inStream("throttlingException", "Too many requests"),
			want{v1beta1.ErrorRateLimited, true, 0, 0, "Too many requests"}},
		"failed in a stream": {inStream("internalServerException", "boom"),
			want{v1beta1.ErrorProviderError, true, 0, 0, "boom"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.check(t, fault.Classify(c.err, fault.Subject{Config: "main", Spec: spec}))
		})
	}
}
