// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
)

// Limits are how many bytes are read of an answer, after decompression.
type Limits struct {
	// Error of an answer that is an error, Answer of one that comes as a whole.
	Error, Answer int64
	// Event of one event of a stream, Stream of all of it.
	Event, Stream int64
	// Streams is whether every answer that is no error is a stream of events; else its type says whether it is.
	Streams bool
	// Binary is whether streams can be such of AWS, whose messages have bounds of their own: 16 MiB.
	Binary bool
}

// ModelLimits are those of the calls of models, all of which are streamed: 1 MiB of an error; 16 MiB of an event, as
// the last event of a response repeats the whole of it; and 1 GiB of a stream. A reply of 1 MiB whose every event
// brings one byte has half of that.
var ModelLimits = Limits{Error: 1 << 20, Event: 16 << 20, Stream: 1 << 30, Streams: true}

// Guard returns the client with limits: redirects are errors, since a conversation and an API key would go along to
// whatever host is named; answers are bounded; and what arrives is noted.
func Guard(client *http.Client, limits Limits) *http.Client {
	guarded := Wrap(client, func(next http.RoundTripper) http.RoundTripper { return guardTransport{next, limits} })
	guarded.CheckRedirect = Stay
	return guarded
}

type guardTransport struct {
	next   http.RoundTripper
	limits Limits
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
	case t.limits.Binary && mediaType(response) == "application/vnd.amazon.eventstream":
		body.limit = t.limits.Stream
	case t.limits.Streams || mediaType(response) == "text/event-stream":
		body.limit, body.event = t.limits.Stream, &eventSize{}
	}
	body.notes.note(response)
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
		return 0, b.notes.cancelOversized(&OversizedError{b.status, b.limit})
	}
	if b.event != nil && int64(b.event.add(p[:n])) > b.eventLimit {
		return 0, b.notes.cancelOversized(&OversizedError{b.status, b.eventLimit})
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
