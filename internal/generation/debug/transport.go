// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"io"
	"net/http"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/debug/redact"
	"parley.dev/parley/internal/httpguard"
)

// maxExchanges is how many HTTP requests of a call are recorded.
const maxExchanges = 8

// Client returns the client, recording the requests of model calls that are recorded. Others it hands on as they are.
func Client(next *http.Client) *http.Client {
	return httpguard.Wrap(next, func(next http.RoundTripper) http.RoundTripper { return transport{next} })
}

type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callOf(r.Context())
	if c == nil {
		return t.next.RoundTrip(r)
	}
	e := c.exchange(r)
	if e == nil {
		return t.next.RoundTrip(r)
	}
	response, err := t.next.RoundTrip(e.teeRequest(r))
	e.answered(response, err)
	if err != nil {
		return response, err
	}
	response.Body = &teedBody{ReadCloser: response.Body, read: e.read, closed: e.closed}
	return response, nil
}

// exchange is an HTTP request and its response while they are recorded.
type exchange struct {
	call *call
	// givenUp reports whether the request was given up.
	givenUp func() error
	exchangeFacts
}

// exchangeFacts are what is known of an exchange. The call's mutex guards them; what a copy shares is only appended to.
type exchangeFacts struct {
	number                        int32
	method, url                   string
	requestHeader, responseHeader http.Header
	requestBody, responseBody     redact.Body
	statusCode                    int
	failure                       v1alpha1.DebugFailure
	startedAt, headersAt, endedAt time.Time
}

// exchange begins to record a request; nil, if there have been too many.
func (c *call) exchange(r *http.Request) *exchange {
	e := &exchange{call: c, givenUp: r.Context().Err, exchangeFacts: exchangeFacts{
		method: r.Method, url: r.URL.String(), requestHeader: r.Header.Clone(), startedAt: c.rec.recorder.options.Now(),
	}}
	if r.GetBody != nil {
		e.requestBody = copyOf(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.exchanges) == maxExchanges {
		return nil
	}
	c.exchanges = append(c.exchanges, e)
	e.number = int32(len(c.exchanges))
	return e
}

// copyOf is the beginning of a body that is in memory.
func copyOf(r *http.Request) redact.Body {
	body, err := r.GetBody()
	if err != nil {
		return redact.Body{}
	}
	defer func() { _ = body.Close() }()
	kept, err := io.ReadAll(io.LimitReader(body, v1alpha1.MaxDebugBodyBytes+1))
	if err != nil {
		return redact.Body{}
	}
	total := max(r.ContentLength, int64(len(kept)))
	return redact.Body{Kept: kept[:min(len(kept), v1alpha1.MaxDebugBodyBytes)], Total: total}
}

// teeRequest records a body that can be read only once while it is sent.
func (e *exchange) teeRequest(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody || r.GetBody != nil {
		return r
	}
	teed := r.WithContext(r.Context()) // A transport must not change its caller's request.
	teed.Body = &teedBody{ReadCloser: r.Body, closed: func() {}, read: func(p []byte, _ error) {
		e.call.mu.Lock()
		defer e.call.mu.Unlock()
		keep(&e.requestBody, p)
	}}
	return teed
}

func keep(b *redact.Body, p []byte) {
	b.Total += int64(len(p))
	b.Kept = append(b.Kept, p[:min(len(p), v1alpha1.MaxDebugBodyBytes-len(b.Kept))]...)
}

func (e *exchange) answered(response *http.Response, err error) {
	now := e.call.rec.recorder.options.Now()
	e.call.mu.Lock()
	defer e.call.mu.Unlock()
	if err != nil {
		e.failure, e.endedAt = e.failureOr(v1alpha1.DebugNoResponse), now
		return
	}
	e.statusCode, e.responseHeader, e.headersAt = response.StatusCode, response.Header.Clone(), now
}

func (e *exchange) failureOr(otherwise v1alpha1.DebugFailure) v1alpha1.DebugFailure {
	if e.givenUp() != nil {
		return v1alpha1.DebugCancelled
	}
	return otherwise
}

// read takes what was read of the response.
func (e *exchange) read(p []byte, err error) {
	now := e.call.rec.recorder.options.Now()
	e.call.mu.Lock()
	defer e.call.mu.Unlock()
	keep(&e.responseBody, p)
	if err == nil || !e.endedAt.IsZero() {
		return
	}
	e.endedAt = now
	if err != io.EOF { //nolint:errorlint // A reader returns it as it is.
		e.failure = e.failureOr(v1alpha1.DebugBrokenOff)
	}
}

func (e *exchange) closed() {
	now := e.call.rec.recorder.options.Now()
	e.call.mu.Lock()
	defer e.call.mu.Unlock()
	if e.endedAt.IsZero() {
		e.endedAt = now
	}
}

// teedBody tells of what is read.
type teedBody struct {
	io.ReadCloser
	read   func(p []byte, err error)
	closed func()
}

// Read implements io.Reader.
func (b *teedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read(p[:n], err)
	return n, err
}

// Close implements io.Closer.
func (b *teedBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}
