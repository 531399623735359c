// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeworkspace

import (
	"fmt"
	"net/http"
	"net/http/httptest"
)

// inMemory hands requests to a handler.
type inMemory struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		m.handler.ServeHTTP(w, r)
	}()
	select {
	case <-answered:
		return w.Result(), nil
	case <-r.Context().Done():
		return nil, fmt.Errorf("waiting for the answer: %w", r.Context().Err())
	}
}
