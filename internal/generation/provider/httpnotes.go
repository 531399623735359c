// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// HTTPNotes are what the newest HTTP answer to a call said of itself, and when something of it came last. Providers' libraries drop
// some of it: Gemini's the headers of an error, all of them that an answer without an error was no model's, and what keeps a
// connection alive while the model thinks.
type HTTPNotes struct {
	// heard is when something came last, in nanoseconds since began.
	heard   atomic.Int64
	began   time.Time
	mu      sync.Mutex
	headers map[string]string
	page    bool
	// oversized is an answer that was given up for its length.
	oversized *oversizedError
}

// waitHeaders are the headers that say whether and when to try again.
var waitHeaders = []string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"}

type httpNotesKey struct{}

// WithHTTPNotes is a context for one call, and where its HTTP answers are noted.
func WithHTTPNotes(ctx context.Context) (context.Context, *HTTPNotes) {
	a := &HTTPNotes{began: time.Now()}
	return context.WithValue(ctx, httpNotesKey{}, a), a
}

// notesOf are the notes of the call whose context that is; nil if none are taken.
func notesOf(ctx context.Context) *HTTPNotes {
	a, _ := ctx.Value(httpNotesKey{}).(*HTTPNotes)
	return a
}

// hear notes that something came.
func (a *HTTPNotes) hear() {
	if a != nil {
		a.heard.Store(int64(time.Since(a.began)))
	}
}

// Silence is how long nothing has come: no headers and not one byte of an answer. What only keeps the connection alive counts as
// something, such as Anthropic's pings and the comments of OpenRouter.
func (a *HTTPNotes) Silence() time.Duration {
	return time.Since(a.began) - time.Duration(a.heard.Load())
}

// giveUp notes that an answer was given up for its length.
func (a *HTTPNotes) giveUp(why *oversizedError) error {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.oversized = why
	}
	return why
}

// tooMuch is the newest answer if it was given up for its length, else nil.
func (a *HTTPNotes) tooMuch() *oversizedError {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.oversized
}

func (a *HTTPNotes) note(response *http.Response) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.headers, a.oversized = map[string]string{}, nil
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
	if a := notesOf(r.Context()); a != nil && err == nil {
		a.note(response)
	}
	return response, err
}
