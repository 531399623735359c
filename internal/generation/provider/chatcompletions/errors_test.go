// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/test/kit/providertest"
)

// brokenOff answers with an error whose body breaks off.
type brokenOff struct{}

// RoundTrip implements http.RoundTripper.
func (brokenOff) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusTooManyRequests, Request: r, Header: http.Header{"Retry-After": {"7"}},
		Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"error":"slow`), brokenOff{}))}, nil
}

// Read implements io.Reader.
func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAnErrorWhoseBodyBreaksOffKeepsItsStatusAndHeaders(t *testing.T) {
	spec := providertest.Compatible.Spec("http://models.example/v1")
	e := fault.Classify(providertest.Call(t, spec, &http.Client{Transport: brokenOff{}}), fault.Subject{Spec: spec})
	if e.Reason != v1alpha1.ErrorRateLimited || e.StatusCode != 429 || e.RetryAfterSeconds == nil ||
		*e.RetryAfterSeconds != 7 {
		t.Errorf("got %+v", e)
	}
}
