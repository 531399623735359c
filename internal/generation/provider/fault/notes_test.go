// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/transport"
	"parley.dev/parley/internal/testing/providertest"
)

// classified calls a model that answers so, and classifies the error.
func classified(t *testing.T, p protocol, answer providertest.Canned) *v1alpha1.GenerationError {
	t.Helper()
	spec := p.Spec("http://models.example/v1")
	ctx, said := transport.WithNotes(t.Context())
	err := providertest.CallWith(ctx, t, spec, key, secret, &http.Client{Transport: answer})
	if err == nil {
		t.Fatal("the call did not fail")
	}
	return fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: key, Private: []string{secret}, HTTP: said})
}

func TestAWebPageIsNoModel(t *testing.T) {
	page := providertest.Canned{Status: 200, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		Body: []byte("<!doctype html><html><body>Welcome to " + secret + "</body></html>")}
	for _, p := range []protocol{chat, responses, compatible, claude, gemini} {
		t.Run(string(p.Provider)+" "+string(p.Transport), func(t *testing.T) {
			e := classified(t, p, page)
			if e.Reason != v1alpha1.ErrorRequestRejected || e.Retryable ||
				!strings.Contains(e.Message, "no model behind baseURL of ChatModelConfig main") ||
				providertest.Leaked(e.Text(), secret, "<html") != "" {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestAReplyThatIsCutIsNoWebPage(t *testing.T) {
	cut := providertest.Canned{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: []byte("data: {}\n\n")}
	if e := classified(t, chat, cut); e.Reason != v1alpha1.ErrorProviderUnavailable || !e.Retryable {
		t.Errorf("got %+v", e)
	}
}

func TestGeminisHeadersCountToo(t *testing.T) {
	const busy = `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`
	for header, want := range map[string]time.Duration{"Retry-After": 7 * time.Second, "retry-after-ms": time.Second} {
		value := map[string]string{"Retry-After": "7", "retry-after-ms": "900"}[header]
		answer := providertest.Canned{Status: 503, Header: http.Header{"Content-Type": {"application/json"}},
			Body: []byte(busy)}
		answer.Header.Set(header, value)
		e := classified(t, gemini, answer)
		if e.Reason != v1alpha1.ErrorOverloaded || e.RetryAfterSeconds == nil ||
			time.Duration(*e.RetryAfterSeconds)*time.Second != want {
			t.Errorf("%s: got %+v", header, e)
		}
	}
}
