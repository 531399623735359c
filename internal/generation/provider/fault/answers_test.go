// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestRefusalTeachesTheContextLimit(t *testing.T) {
	for _, c := range []struct {
		protocol providertest.Protocol
		message  string
		want     int64
	}{
		{providertest.Chat,
			"This model's maximum context length is 128000 tokens. However, your messages resulted in 130531 tokens. " +
				"Please reduce the length of the messages.", 128_000},
		{providertest.Compatible,
			"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, " +
				"1000 in the completion).", 4096},
		{providertest.Compatible,
			"You passed 8193 input tokens and requested 1 output tokens. However, the model's maximum context length is 8192 " +
				"tokens.", 8192},
		{providertest.Compatible, "You passed 8193 input tokens and requested 100 output tokens. However, the model's " +
			"context length is only 8192 tokens.", 8192},
		{providertest.Compatible, "The decoder prompt (length 40000) is longer than the maximum model length of 32768. " +
			"Make sure that max_model_len is no smaller than the number of text tokens plus multimodal tokens.", 32_768},
		{providertest.Compatible, "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
			32_768},
		{providertest.Compatible, "Your request exceeded model token limit: 262144 (requested: 269030)", 262_144},
		{providertest.Compatible, "Prompt exceeds max length", 0},
		{providertest.Compatible, "The number of tokens to keep from the initial prompt is greater than the context length.",
			0},
		{providertest.Compatible, "the request exceeds the available context size (8192 tokens), try increasing it", 8192},
		{providertest.Compatible, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
			131_072},
		{providertest.Compatible, "Input is too long: the context window of 1,048,576 tokens is exceeded", 1_048_576},
		{providertest.Claude, "prompt is too long: 210000 tokens > 200000 maximum", 200_000},
		{providertest.Gemini, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
			1_048_576},
		{providertest.Chat, "Your input exceeds the context window of this model. Please adjust your input and try again.",
			0},
		{providertest.Chat, "This model's maximum context length is 12 tokens. However, your messages resulted in 30 tokens.",
			0},
		{providertest.Chat, "maximum context length is 999999999999999999999999 tokens", 0},
	} {
		quoted, err := json.Marshal(c.message)
		check.OK(t, err)
		body := `{"error":{"type":"invalid_request_error","message":` + string(quoted) + `}}`
		switch c.protocol {
		case providertest.Claude:
			body = `{"type":"error","error":{"type":"invalid_request_error","message":` + string(quoted) + `}}`
		case providertest.Gemini:
			body = `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":` + string(quoted) + `}}`
		}
		answer := providertest.Canned{Status: 400, Header: http.Header{"Content-Type": {"application/json"}},
			Body: []byte(body)}
		spec := c.protocol.Spec("http://models.example/v1")
		e := fault.Classify(providertest.Call(t, spec, &http.Client{Transport: answer}),
			fault.Subject{Config: "main", Spec: spec, Key: providertest.Key})
		check.Equal(t, c.message, []any{v1beta1.ErrorContextTooLong, c.want}, []any{e.Reason, e.ContextLimit})
	}
}

// classified calls a model that answers so, and classifies the error.
func classified(t *testing.T, p providertest.Protocol, answer providertest.Canned) *v1beta1.GenerationError {
	t.Helper()
	spec := p.Spec("http://models.example/v1")
	ctx, said := httpguard.WithNotes(t.Context(), time.Now)
	err := providertest.CallWith(ctx, t, spec, providertest.Key, providertest.Secret, &http.Client{Transport: answer})
	if err == nil {
		t.Fatal("the call did not fail")
	}
	return fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key,
		Private: []string{providertest.Secret}, HTTP: said})
}

func TestAWebPageIsNoModel(t *testing.T) {
	page := providertest.Canned{Status: 200, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		Body: []byte("<!doctype html><html><body>Welcome to " + providertest.Secret + "</body></html>")}
	for _, p := range providertest.All {
		t.Run(string(p.Provider)+" "+string(p.Transport), func(t *testing.T) {
			e := classified(t, p, page)
			check.Equal(t, "reason, retryable, leaked", []any{v1beta1.ErrorRequestRejected, false, ""},
				[]any{e.Reason, e.Retryable, providertest.Leaked(e.Text(), providertest.Secret, "<html")})
			check.Contains(t, e.Message, "no model behind baseURL of ChatModelConfig main")
		})
	}
}

func TestCutReplyIsNoWebPage(t *testing.T) {
	cut := providertest.Canned{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: []byte("data: {}\n\n")}
	e := classified(t, providertest.Chat, cut)
	check.Equal(t, "reason, retryable", []any{v1beta1.ErrorProviderUnavailable, true}, []any{e.Reason, e.Retryable})
}

func TestGeminisHeadersCountToo(t *testing.T) {
	const busy = `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`
	for header, want := range map[string]time.Duration{"Retry-After": 7 * time.Second, "retry-after-ms": time.Second} {
		value := map[string]string{"Retry-After": "7", "retry-after-ms": "900"}[header]
		answer := providertest.Canned{Status: 503, Header: http.Header{"Content-Type": {"application/json"}},
			Body: []byte(busy)}
		answer.Header.Set(header, value)
		e := classified(t, providertest.Gemini, answer)
		if e.Reason != v1beta1.ErrorOverloaded || e.RetryAfterSeconds == nil ||
			time.Duration(*e.RetryAfterSeconds)*time.Second != want {
			t.Errorf("%s: got %+v", header, e)
		}
	}
}
