// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// Bounds of what is read of an answer, as it is after decompression. Providers' libraries read errors and answers that are no
// streams as a whole, and streams event by event.
const (
	// maxErrorBytes of an answer that is an error: 1 MiB.
	maxErrorBytes = 1 << 20
	// maxAnswerBytes of an answer that comes as a whole: 32 MiB. A reply has at most 1 MiB of content, six times that if all of it
	// is escaped.
	maxAnswerBytes = 32 << 20
	// maxEventBytes of one event of a stream: 16 MiB. The last event of a response repeats the whole of it.
	maxEventBytes = 16 << 20
	// maxStreamBytes of a stream: 1 GiB. A reply of 1 MiB whose every event brings one byte has half of that.
	maxStreamBytes = 1 << 30
)

// redirectError is an answer that points to somewhere else.
type redirectError struct {
	status int
	// to is the scheme and the host that it names; empty if it names none that can be shown.
	to string
}

// Error implements error.
func (e *redirectError) Error() string {
	return fmt.Sprintf("the answer is a redirect to %s (%d), which is not followed", e.to, e.status)
}

// oversizedError is an answer that is longer than any that is of use.
type oversizedError struct {
	status int
	limit  int64
}

// Error implements error.
func (e *oversizedError) Error() string {
	return fmt.Sprintf("the answer (%d) has more than %d bytes", e.status, e.limit)
}

// streamedKey marks the context of a call whose answer is read as a stream.
type streamedKey struct{}

// streamedModel marks the calls of a model whose answers are read as streams.
type streamedModel struct{ fantasy.LanguageModel }

// Stream implements fantasy.LanguageModel.
func (m streamedModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	return m.LanguageModel.Stream(context.WithValue(ctx, streamedKey{}, true), call)
}

// guarded is the client as calls of models use it: redirects are errors, since the conversation and the API key would go along
// to whatever host is named; answers are bounded; and what arrives is a sign of life.
func guarded(client *http.Client, provider v1alpha1.ModelProvider) *http.Client {
	own := through(client, func(next http.RoundTripper) http.RoundTripper {
		return guardTransport{next: next, binary: provider == v1alpha1.ProviderBedrock}
	})
	own.CheckRedirect = stay
	return own
}

type guardTransport struct {
	next http.RoundTripper
	// binary is whether streams can be such of AWS, whose messages have bounds of their own: 16 MiB.
	binary bool
}

// RoundTrip implements http.RoundTripper.
func (t guardTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close() // It is not read.
		return nil, &redirectError{response.StatusCode, pointsTo(r.URL, response.Header.Get("Location"))}
	}
	body := &guardedBody{ReadCloser: response.Body, status: response.StatusCode, notes: notesOf(r.Context()), limit: maxAnswerBytes}
	switch streamed, _ := r.Context().Value(streamedKey{}).(bool); {
	case response.StatusCode >= http.StatusBadRequest:
		body.limit = maxErrorBytes
	case streamed:
		body.limit, body.event = maxStreamBytes, &eventSize{}
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
	if err != nil || location == "" || !hostName.MatchString(to.Host) || to.Scheme != "http" && to.Scheme != "https" {
		return ""
	}
	return to.Scheme + "://" + to.Host
}

// guardedBody bounds what is read of an answer, and notes that something came.
type guardedBody struct {
	io.ReadCloser
	status      int
	notes       *HTTPNotes
	read, limit int64
	// event is nil where events are not bounded.
	event *eventSize
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.notes.hear()
	}
	if b.read += int64(n); b.read > b.limit {
		return 0, b.notes.giveUp(&oversizedError{b.status, b.limit})
	}
	if b.event != nil && b.event.add(p[:n]) > maxEventBytes {
		return 0, b.notes.giveUp(&oversizedError{b.status, maxEventBytes})
	}
	return n, err
}

// eventSize is how much of a stream's newest event has come. Events end with an empty line; one that is not noticed makes the
// next event seem longer, no more.
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
