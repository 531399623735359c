// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"

	"parley.dev/parley/api/v1alpha1"
)

// Bounds of what is read of an answer, as it is after decompression. Package wire reads an error as a whole, and a
// stream event by event.
const (
	// maxErrorBytes of an answer that is an error: 1 MiB.
	maxErrorBytes = 1 << 20
	// maxEventBytes of one event of a stream: 16 MiB. The last event of a response repeats the whole of it.
	maxEventBytes = 16 << 20
	// maxStreamBytes of a stream: 1 GiB. A reply of 1 MiB whose every event brings one byte has half of that.
	maxStreamBytes = 1 << 30
)

// Limits are how many bytes are read of an answer, after decompression.
type Limits struct {
	// Error of an answer that is an error, Answer of one that comes as a whole.
	Error, Answer int64
	// Event of one event of a stream, Stream of all of it.
	Event, Stream int64
}

var ofModels = Limits{Error: maxErrorBytes, Event: maxEventBytes, Stream: maxStreamBytes}

// Guard returns the client as calls of a provider's models use it: redirects are errors, since the conversation and the
// API key would go along to whatever host is named; answers are bounded; and what arrives is a sign of life.
func Guard(client *http.Client, provider v1alpha1.ModelProvider) *http.Client {
	guarded := Wrap(client, func(next http.RoundTripper) http.RoundTripper {
		return guardTransport{next: next, binary: provider == v1alpha1.ProviderBedrock, limits: ofModels, streams: always}
	})
	guarded.CheckRedirect = stay
	return guarded
}

// GuardWithin is Guard with other limits, for a protocol in which the answer's type says whether it is a stream of
// events.
func GuardWithin(client *http.Client, limits Limits) *http.Client {
	guarded := Wrap(client, func(next http.RoundTripper) http.RoundTripper {
		return guardTransport{next: next, limits: limits, streams: ofEvents}
	})
	guarded.CheckRedirect = stay
	return guarded
}

// always reports true: calls of models are streamed.
func always(*http.Request, *http.Response) bool { return true }

// ofEvents reports whether the answer says that it is a stream of events.
func ofEvents(_ *http.Request, response *http.Response) bool {
	return mediaType(response) == "text/event-stream"
}

type guardTransport struct {
	next http.RoundTripper
	// binary is whether streams can be such of AWS, whose messages have bounds of their own: 16 MiB.
	binary  bool
	limits  Limits
	streams func(*http.Request, *http.Response) bool
}

// RoundTrip implements http.RoundTripper.
func (t guardTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close() // It is not read.
		return nil, &RedirectError{response.StatusCode, pointsTo(r.URL, response.Header.Get("Location"))}
	}
	body := &guardedBody{ReadCloser: response.Body, status: response.StatusCode, notes: notesOf(r.Context()),
		limit: t.limits.Answer, eventLimit: t.limits.Event}
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		body.limit = t.limits.Error
	case t.streams(r, response):
		body.limit, body.event = t.limits.Stream, &eventSize{}
		if t.binary && mediaType(response) == "application/vnd.amazon.eventstream" {
			body.event = nil
		}
	}
	body.notes.hear()
	response.Body = body
	return response, nil
}

func mediaType(response *http.Response) string {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// pointsTo is the scheme and the host that a redirect names, and nothing else of the URL: it can hold secrets.
func pointsTo(from *url.URL, location string) string {
	to, err := from.Parse(location)
	if err != nil || location == "" || !Showable(to.Host) || to.Scheme != "http" && to.Scheme != "https" {
		return ""
	}
	return to.Scheme + "://" + to.Host
}

// hostName is a name that can be shown: nothing else of a URL is.
var hostName = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,253}$`)

// Showable reports whether the host of a URL is a name that can be shown.
func Showable(host string) bool { return hostName.MatchString(host) }

// guardedBody bounds what is read of an answer, and notes that something came.
type guardedBody struct {
	io.ReadCloser
	status      int
	notes       *Notes
	read, limit int64
	// event is nil where events are not bounded.
	event      *eventSize
	eventLimit int64
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.notes.hear()
	}
	if b.read += int64(n); b.read > b.limit {
		return 0, b.notes.giveUp(&OversizedError{b.status, b.limit})
	}
	if b.event != nil && int64(b.event.add(p[:n])) > b.eventLimit {
		return 0, b.notes.giveUp(&OversizedError{b.status, b.eventLimit})
	}
	return n, err
}

// eventSize is how much of a stream's newest event has come. Events end with an empty line; one that is not noticed
// makes the next event seem longer, no more.
type eventSize struct {
	bytes int
	// newline is whether what came last was the end of a line.
	newline bool
}

// add takes what has come, and returns how much of the newest event that makes.
func (e *eventSize) add(p []byte) int {
	if len(p) == 0 {
		return e.bytes
	}
	if e.newline && (p[0] == '\n' || bytes.HasPrefix(p, []byte("\r\n"))) {
		e.bytes = 0
	}
	if at := max(bytes.LastIndex(p, []byte("\n\n")), bytes.LastIndex(p, []byte("\n\r\n"))); at >= 0 {
		e.bytes = len(p) - at
	} else {
		e.bytes += len(p)
	}
	e.newline = p[len(p)-1] == '\n'
	return e.bytes
}
