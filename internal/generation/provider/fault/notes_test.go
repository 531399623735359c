// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"net/http"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// classified calls a model that answers so, and classifies the error.
func classified(t *testing.T, p providertest.Protocol, answer providertest.Canned) *v1alpha1.GenerationError {
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
			check.Equal(t, "reason, retryable, leaked", []any{v1alpha1.ErrorRequestRejected, false, ""},
				[]any{e.Reason, e.Retryable, providertest.Leaked(e.Text(), providertest.Secret, "<html")})
			check.Contains(t, e.Message, "no model behind baseURL of ChatModelConfig main")
		})
	}
}

func TestAReplyThatIsCutIsNoWebPage(t *testing.T) {
	cut := providertest.Canned{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: []byte("data: {}\n\n")}
	e := classified(t, providertest.Chat, cut)
	check.Equal(t, "reason, retryable", []any{v1alpha1.ErrorProviderUnavailable, true}, []any{e.Reason, e.Retryable})
}

func TestGeminisHeadersCountToo(t *testing.T) {
	const busy = `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`
	for header, want := range map[string]time.Duration{"Retry-After": 7 * time.Second, "retry-after-ms": time.Second} {
		value := map[string]string{"Retry-After": "7", "retry-after-ms": "900"}[header]
		answer := providertest.Canned{Status: 503, Header: http.Header{"Content-Type": {"application/json"}},
			Body: []byte(busy)}
		answer.Header.Set(header, value)
		e := classified(t, providertest.Gemini, answer)
		if e.Reason != v1alpha1.ErrorOverloaded || e.RetryAfterSeconds == nil ||
			time.Duration(*e.RetryAfterSeconds)*time.Second != want {
			t.Errorf("%s: got %+v", header, e)
		}
	}
}
