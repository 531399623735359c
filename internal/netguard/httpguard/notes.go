// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Notes are what the newest HTTP answer to a call said of itself, and when something of it came last. The error of a
// call does not have all of that: an error within a stream has no headers, and only the type of an answer shows that it
// was a web page.
type Notes struct {
	// heard is when something came last, in nanoseconds since began.
	heard   atomic.Int64
	began   time.Time
	now     func() time.Time
	mu      sync.Mutex
	headers map[string]string
	page    bool
	// oversized is an answer that was cancelled for its length.
	oversized *OversizedError
}

// waitHeaders are the headers that say whether and when to try again.
var waitHeaders = []string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"}

// notesKey is where the notes of a call are in its context, the only thing of it that reaches the transport.
type notesKey struct{}

// WithNotes returns the context of one call, and where a guarded client notes its HTTP answers. now returns the
// current time.
func WithNotes(ctx context.Context, now func() time.Time) (context.Context, *Notes) {
	n := &Notes{began: now(), now: now}
	return context.WithValue(ctx, notesKey{}, n), n
}

// notesOf are the notes of the call whose context that is; nil if none are taken.
func notesOf(ctx context.Context) *Notes {
	n, _ := ctx.Value(notesKey{}).(*Notes)
	return n
}

// hear notes that something came.
func (n *Notes) hear() {
	if n != nil {
		n.heard.Store(int64(n.now().Sub(n.began)))
	}
}

// Silence is how long nothing has come: no headers and not one byte of an answer. What only keeps the connection alive
// counts as something, such as Anthropic's pings and the comments of OpenRouter.
func (n *Notes) Silence() time.Duration {
	return n.now().Sub(n.began) - time.Duration(n.heard.Load())
}

// cancelOversized notes that an answer was cancelled for its length.
func (n *Notes) cancelOversized(why *OversizedError) error {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.oversized = why
	}
	return why
}

// Oversized is the newest answer that was cancelled for its length; nil if none was.
func (n *Notes) Oversized() *OversizedError {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.oversized
}

// note notes what an answer says of itself.
func (n *Notes) note(response *http.Response) {
	if n == nil {
		return
	}
	n.hear()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.headers = map[string]string{}
	for _, name := range waitHeaders {
		if value := response.Header.Get(name); value != "" {
			n.headers[strings.ToLower(name)] = value
		}
	}
	n.page = mediaType(response) == "text/html" && response.StatusCode == http.StatusOK
}

// Said returns the headers that an error has, or else those that were noted, and reports whether the answer was a web
// page.
func (n *Notes) Said(told map[string]string) (headers map[string]string, page bool) {
	if n == nil {
		return told, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(told) == 0 {
		told = n.headers
	}
	return told, n.page
}
