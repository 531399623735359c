// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"context"
	"fmt"
	"net/http"

	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/rewrite"
)

// urlsKey is where the URLs of a call are in its context: fantasy hands that on to the transport, and nothing else of
// ours.
type urlsKey struct{}

func withURLs(ctx context.Context, urls standIns) context.Context {
	return context.WithValue(ctx, urlsKey{}, urls)
}

// urlTransport writes the URLs of files into the requests of calls that hand some over. Other requests it sends as they
// are.
type urlTransport struct {
	next http.RoundTripper
	form wireForm
}

// RoundTrip implements http.RoundTripper.
func (t urlTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	urls, ok := r.Context().Value(urlsKey{}).(standIns)
	if !ok {
		return t.next.RoundTrip(r)
	}
	if r.Body == nil {
		return nil, fmt.Errorf("%w: it has no body", fault.ErrFileURLs)
	}
	r, err := rewrite.Request(r, func(body []byte) ([]byte, error) { return t.form.write(body, urls) })
	if err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}
