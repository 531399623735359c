// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"mime"
	"net/http"
	"strings"
	"sync"
)

// HTTPNotes are what the newest HTTP answer to a call said of itself. Providers' libraries drop some of it: Gemini's the headers of an
// error, all of them that an answer without an error was no model's.
type HTTPNotes struct {
	mu      sync.Mutex
	headers map[string]string
	page    bool
}

// waitHeaders are the headers that say whether and when to try again.
var waitHeaders = []string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"}

type httpNotesKey struct{}

// WithHTTPNotes is a context for one call, and where its HTTP answers are noted.
func WithHTTPNotes(ctx context.Context) (context.Context, *HTTPNotes) {
	a := &HTTPNotes{}
	return context.WithValue(ctx, httpNotesKey{}, a), a
}

func (a *HTTPNotes) note(response *http.Response) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.headers = map[string]string{}
	for _, name := range waitHeaders {
		if value := response.Header.Get(name); value != "" {
			a.headers[strings.ToLower(name)] = value
		}
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	a.page = err == nil && kind == "text/html" && response.StatusCode == http.StatusOK
}

// said is the headers that a library told of, or else those that were noted; and whether the answer was a web page.
func (a *HTTPNotes) said(told map[string]string) (headers map[string]string, page bool) {
	if a == nil {
		return told, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(told) == 0 {
		told = a.headers
	}
	return told, a.page
}

// noting is the client, which notes the answers of calls in whose context that was asked for.
func noting(client *http.Client) *http.Client {
	return through(client, func(next http.RoundTripper) http.RoundTripper { return notingTransport{next} })
}

type notingTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t notingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if a, ok := r.Context().Value(httpNotesKey{}).(*HTTPNotes); ok && err == nil {
		a.note(response)
	}
	return response, err
}
