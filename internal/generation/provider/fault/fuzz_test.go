// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// What a call carries, and what must not come out.
const (
	fuzzKey      = "sk-proj-Qm7vT2xLp9"
	fuzzHeader   = "team-token-8c1e44"
	fuzzPassword = "p4ssw0rd-of-gateway"
	fuzzQuery    = "query-token-77aa12"
	fuzzPrompt   = "The merger with Acme will be announced on the first of May, before the markets open."
	fuzzRaw      = "neither-a-message-nor-public"
)

// plant puts secrets where the input names them, so that every input that is made of another one has them too.
var plant = strings.NewReplacer("{key}", fuzzKey, "{header}", fuzzHeader, "{password}", fuzzPassword, "{query}",
	fuzzQuery,
	"{prompt}", fuzzPrompt, "{raw}", fuzzRaw)

// FuzzClassify lets providers answer anything, also what they were sent, and looks for it in what is told of the error.
func FuzzClassify(f *testing.F) {
	for i := range providertest.All {
		who := uint8(i)
		f.Add(who, uint16(401), "Retry-After", "7",
			`{"error":{"message":"Incorrect API key provided: {key}.","type":"invalid_request_error","code":"invalid_api_key"}}`)
		f.Add(who, uint16(400), "X-Debug", "{key}{prompt}",
			`{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: {header} '{prompt}'"}}`)
		f.Add(who, uint16(429), "retry-after-ms", "1e309",
			`{"error":{"code":429,"message":"{raw} {password}","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34.5s"},{"violations":[{"quotaId":"PerDay"}]}]}}`)
		f.Add(who, uint16(502), "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT", "<html>{raw} {key} {prompt}</html>")
		f.Add(who, uint16(500), "x-should-retry", "true", `{"error":"see https://gateway:{password}@host/v1?token={query}"}`)
		f.Add(who, uint16(200), "", "",
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"{prompt}\"}}\n\n")
		f.Add(who, uint16(200), "", "",
			"event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"{key} {header}\"}\n\n")
		f.Add(who, uint16(200), "", "", "data: {raw}{key}\n\n")
	}
	f.Fuzz(func(t *testing.T, who uint8, code uint16, name, value, body string) {
		p := providertest.All[int(who)%len(providertest.All)]
		answer := providertest.Canned{Status: 200 + int(code)%400, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: []byte(plant.Replace(body))}
		if answer.Status >= http.StatusBadRequest {
			answer.Header.Set("Content-Type", "application/json")
		}
		answer.Header[name] = []string{plant.Replace(value)}
		spec := p.Spec("http://user:" + fuzzPassword + "@models.example/v1?token=" + fuzzQuery)
		spec.Headers = []v1beta1.Header{{Name: "X-Token", Value: fuzzHeader}}
		ctx, said := httpguard.WithNotes(t.Context(), time.Now)
		err := providertest.CallWith(ctx, t, spec, fuzzKey, fuzzPrompt, &http.Client{Transport: answer})
		if err == nil {
			return // A good answer by chance.
		}
		e := fault.Classify(err, fault.Subject{
			Config: "main", Spec: spec, Key: fuzzKey, Private: []string{fuzzPrompt}, HTTP: said,
			Now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		})
		checkTold(t, e)
		if !strings.Contains(body, "message") && !strings.Contains(body, "error") && strings.Contains(e.Text(), fuzzRaw) {
			t.Errorf("a body that is no error is told: %s", e.Text())
		}
	})
}

func checkTold(t *testing.T, e *v1beta1.GenerationError) {
	t.Helper()
	check.Equal(t, "what the message quotes", "",
		providertest.Leaked(e.Text(), fuzzKey, fuzzHeader, fuzzPassword, fuzzQuery, fuzzPrompt))
	for i := 0; i+24 <= len(fuzzPrompt); i++ {
		if strings.Contains(e.Text(), fuzzPrompt[i:i+24]) {
			t.Fatalf("the prompt is quoted: %s", e.Text())
		}
	}
	if !utf8.ValidString(e.Text()) || max(utf8.RuneCountInString(e.Message), utf8.RuneCountInString(e.Advice)) > 1024 ||
		strings.ContainsFunc(e.Text(), unicode.IsControl) {
		t.Errorf("the message is %q", e.Text())
	}
	if e.RetryAfterSeconds != nil && (!e.Retryable || *e.RetryAfterSeconds < 1 || *e.RetryAfterSeconds > 3600) {
		t.Errorf("retryable %v after %d s", e.Retryable, *e.RetryAfterSeconds)
	}
	if e.StatusCode < 0 || e.StatusCode > 599 || !slices.Contains(everyReason, e.Reason) {
		t.Errorf("got %s %d", e.Reason, e.StatusCode)
	}
}

// everyReason are the reasons that an error of a call can have.
var everyReason = []v1beta1.ErrorReason{
	v1beta1.ErrorRateLimited, v1beta1.ErrorOverloaded, v1beta1.ErrorProviderUnavailable, v1beta1.ErrorProviderTimeout,
	v1beta1.ErrorProviderError,
	v1beta1.ErrorAuthenticationFailed, v1beta1.ErrorPermissionDenied, v1beta1.ErrorUsageLimitReached,
	v1beta1.ErrorProviderDisabled,
	v1beta1.ErrorTLSFailed, v1beta1.ErrorModelNotFound, v1beta1.ErrorRequestRejected, v1beta1.ErrorHistoryRejected,
	v1beta1.ErrorContentFiltered, v1beta1.ErrorContextTooLong, v1beta1.ErrorUnknown, v1beta1.ErrorCanceled,
	v1beta1.ErrorModelConfigInvalid,
}
