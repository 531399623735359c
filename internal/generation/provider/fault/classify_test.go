// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func classify(t *testing.T, p providertest.Protocol, base string) *v1beta1.GenerationError {
	t.Helper()
	spec := p.Spec(base)
	err := providertest.Call(t, spec, http.DefaultClient)
	if err == nil {
		t.Fatal("the call succeeded")
	}
	got := fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key})
	check.Lacks(t, got.Text(), providertest.Key, providertest.Secret, "x-query", strings.TrimPrefix(base, "http://"))
	check.Equal(t, "message, advice, provider", []any{true, true, string(p.Provider)},
		[]any{told(got.Message), told(got.Advice), got.Provider})
	return got
}

// The providers' bodies for an error.
func openAIBody(message, kind, code string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%s}}`, message, kind, code)
}
func claudeBody(message, kind string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`,
		kind, message)
}
func geminiBody(status int, message, kind string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, status, message, kind)
}

func TestAnErrorOfAProviderGetsItsReason(t *testing.T) {
	echoed := "Incorrect API key provided: " + providertest.Key +
		". You can find your API key at https://platform.openai.com/account/api-keys."
	tooLong := "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
	cases := []struct {
		name      string
		protocols []providertest.Protocol
		status    int
		body      string
		want      v1beta1.ErrorReason
		says      string
	}{
		{"401", everyOpenAI, 401, openAIBody(echoed, "invalid_request_error", `"invalid_api_key"`),
			v1beta1.ErrorAuthenticationFailed, `key "token" of Secret keys`},
		{"403", everyOpenAI, 403, openAIBody("You are not allowed to sample from this model "+providertest.Key,
			"invalid_request_error",
			"null"), v1beta1.ErrorPermissionDenied, "some-model"},
		{"402", everyOpenAI, 402, openAIBody("Insufficient credits", "billing", "null"), v1beta1.ErrorUsageLimitReached,
			"billing"},
		{"429 of quota", everyOpenAI, 429,
			openAIBody("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota",
				`"insufficient_quota"`), v1beta1.ErrorUsageLimitReached, "billing"},
		{"429", everyOpenAI, 429, openAIBody("Rate limit reached for some-model in organization org-abc on requests per min",
			"requests", `"rate_limit_exceeded"`), v1beta1.ErrorRateLimited, "Wait"},
		{"500", everyOpenAI, 500, openAIBody("The server had an error while processing your request", "server_error", "null"),
			v1beta1.ErrorProviderError, "try again"},
		{"503", everyOpenAI, 503, openAIBody("The engine is currently overloaded, please try again later", "server_error",
			"null"), v1beta1.ErrorOverloaded, "no capacity"},
		{"400", everyOpenAI, 400, openAIBody("Unsupported value: 'temperature' with key "+providertest.Key,
			"invalid_request_error",
			`"unsupported_value"`), v1beta1.ErrorRequestRejected, "Unsupported value"},
		{"404", everyOpenAI, 404, openAIBody("The model `some-model` does not exist", "invalid_request_error",
			`"model_not_found"`), v1beta1.ErrorModelNotFound, "does not exist"},
		{"too long", everyOpenAI, 400, openAIBody(tooLong, "invalid_request_error", `"context_length_exceeded"`),
			v1beta1.ErrorContextTooLong, "Start a new chat"},
		{"a proxy's page", everyOpenAI, 502, "<html>" + providertest.Key + " " + providertest.Secret + "</html>",
			v1beta1.ErrorProviderUnavailable,
			""},
		{"a body of no meaning", everyOpenAI, 400, "my-prompt-of-great-secrecy", v1beta1.ErrorRequestRejected, ""},
		{"llama.cpp: too long", onlyCompatible, 400, openAIBody("request exceeds the available context size",
			"exceed_context_size_error", "400"), v1beta1.ErrorContextTooLong, ""},

		{"401", onlyClaude, 401, claudeBody("invalid x-api-key "+providertest.Key, "authentication_error"),
			v1beta1.ErrorAuthenticationFailed, "Secret keys"},
		{"403", onlyClaude, 403, claudeBody("Your API key does not have permission to use the specified resource.",
			"permission_error"), v1beta1.ErrorPermissionDenied, ""},
		{"402", onlyClaude, 402, claudeBody("There is an issue with your billing", "billing_error"),
			v1beta1.ErrorUsageLimitReached, ""},
		{"no credit", onlyClaude, 400, claudeBody("Your credit balance is too low to access the Anthropic API.",
			"invalid_request_error"), v1beta1.ErrorUsageLimitReached, ""},
		{"429", onlyClaude, 429, claudeBody("This request would exceed your rate limit", "rate_limit_error"),
			v1beta1.ErrorRateLimited, ""},
		{"529", onlyClaude, 529, claudeBody("Overloaded", "overloaded_error"), v1beta1.ErrorOverloaded, ""},
		{"500", onlyClaude, 500, claudeBody("Internal server error", "api_error"), v1beta1.ErrorProviderError, ""},
		{"503", onlyClaude, 503, claudeBody("Service unavailable", "api_error"), v1beta1.ErrorProviderUnavailable,
			""},
		{"400", onlyClaude, 400, claudeBody("max_tokens: must be positive", "invalid_request_error"),
			v1beta1.ErrorRequestRejected, "max_tokens"},
		{"too long", onlyClaude, 400, claudeBody("prompt is too long: 210000 tokens > 200000 maximum",
			"invalid_request_error"), v1beta1.ErrorContextTooLong, ""},

		{"400 of a bad key", onlyGemini, 400, geminiBody(400, "API key not valid. Please pass a valid API key.",
			"INVALID_ARGUMENT"), v1beta1.ErrorAuthenticationFailed, "Secret keys"},
		{"401", onlyGemini, 401, geminiBody(401, "Request had invalid authentication credentials "+providertest.Key,
			"UNAUTHENTICATED"), v1beta1.ErrorAuthenticationFailed, ""},
		{"403", onlyGemini, 403, geminiBody(403, "Permission denied for "+providertest.Key, "PERMISSION_DENIED"),
			v1beta1.ErrorPermissionDenied, ""},
		{"429", onlyGemini, 429, geminiBody(429, "Resource has been exhausted (e.g. check quota).",
			"RESOURCE_EXHAUSTED"), v1beta1.ErrorRateLimited, ""},
		{"500", onlyGemini, 500, geminiBody(500, "An internal error has occurred.", "INTERNAL"),
			v1beta1.ErrorProviderError, ""},
		{"503", onlyGemini, 503, geminiBody(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"),
			v1beta1.ErrorOverloaded, ""},
		{"400", onlyGemini, 400, geminiBody(400, "Invalid value at generation_config", "INVALID_ARGUMENT"),
			v1beta1.ErrorRequestRejected, "generation_config"},
		{"too long", onlyGemini, 400,
			geminiBody(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
				"INVALID_ARGUMENT"), v1beta1.ErrorContextTooLong, ""},
	}
	for _, c := range cases {
		for _, p := range c.protocols {
			t.Run(fmt.Sprint(p.Provider, p.Transport, " ", c.name), func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body) // The client sees a short body, which fails the test.
				}))
				defer server.Close()
				got := classify(t, p, server.URL+"/v1")
				check.Equal(t, "reason, status code", []any{c.want, c.status}, []any{got.Reason, int(got.StatusCode)})
				check.Contains(t, got.Text(), c.says)
			})
		}
	}
}

func TestANetworkThatFailsIsAnUnavailableProvider(t *testing.T) {
	failures := map[string]http.HandlerFunc{
		"reset before the head": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut within the stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": ping\n\n") // Being cut off is the point.
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	}
	for _, p := range providertest.All {
		for name, handler := range failures {
			t.Run(fmt.Sprint(p.Provider, p.Transport, " ", name), func(t *testing.T) {
				server := httptest.NewServer(handler)
				defer server.Close()
				check.Equal(t, "the reason", v1beta1.ErrorProviderUnavailable, classify(t, p, server.URL+"/v1").Reason)
			})
		}
		t.Run(fmt.Sprint(p.Provider, p.Transport, " refused"), func(t *testing.T) {
			server := httptest.NewServer(nil)
			server.Close()
			got := classify(t, p, server.URL+"/v1")
			check.Equal(t, "reason, status", []any{v1beta1.ErrorProviderUnavailable, 0}, []any{got.Reason, got.StatusCode})
		})
	}
}
