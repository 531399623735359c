// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider"
)

// classified calls a model that answers so, and classifies the error.
func classified(t *testing.T, p protocol, answer canned) *v1alpha1.GenerationError {
	t.Helper()
	spec := p.spec("http://models.example/v1")
	ctx, said := provider.WithHTTPNotes(t.Context())
	err := callIn(ctx, t, spec, key, secret, &http.Client{Transport: answer})
	if err == nil {
		t.Fatal("the call did not fail")
	}
	return provider.Classify(err, provider.Subject{Config: "main", Spec: spec, Key: key, Private: []string{secret}, HTTP: said})
}

func TestAWebPageIsNoModel(t *testing.T) {
	page := canned{status: 200, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, body: []byte("<!doctype html><html><body>Welcome to " + secret + "</body></html>")}
	for _, p := range []protocol{chat, responses, compatible, claude, gemini} {
		t.Run(string(p.provider)+" "+string(p.transport), func(t *testing.T) {
			e := classified(t, p, page)
			if e.Reason != v1alpha1.ErrorRequestRejected || e.Retryable || !strings.Contains(e.Message, "no model behind baseURL of ChatModelConfig main") || leaks(e.Text(), secret, "<html") != "" {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestAReplyThatIsCutIsNoWebPage(t *testing.T) {
	cut := canned{status: 200, header: http.Header{"Content-Type": {"text/event-stream"}}, body: []byte("data: {}\n\n")}
	if e := classified(t, chat, cut); e.Reason != v1alpha1.ErrorProviderUnavailable || !e.Retryable {
		t.Errorf("got %+v", e)
	}
}

func TestGeminisHeadersCountToo(t *testing.T) {
	const busy = `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`
	for header, want := range map[string]time.Duration{"Retry-After": 7 * time.Second, "retry-after-ms": time.Second} {
		value := map[string]string{"Retry-After": "7", "retry-after-ms": "900"}[header]
		answer := canned{status: 503, header: http.Header{"Content-Type": {"application/json"}}, body: []byte(busy)}
		answer.header.Set(header, value)
		e := classified(t, gemini, answer)
		if e.Reason != v1alpha1.ErrorOverloaded || e.RetryAfterSeconds == nil || time.Duration(*e.RetryAfterSeconds)*time.Second != want {
			t.Errorf("%s: got %+v", header, e)
		}
	}
}
