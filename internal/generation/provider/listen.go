// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"charm.land/fantasy"
)

// ear follows one streamed call on both sides of fantasy: it reads the lines that the provider sends, and the parts that fantasy
// makes of them. So what fantasy drops or gets wrong can be mended. Both sides are called by the goroutine that reads the stream.
type ear interface {
	// line returns the line to read in place of one, which has no line feed; the same if nothing is to be mended. It may not
	// keep it. It should do no more than look for a few bytes in lines that need no mending: there is one for each token.
	line(line []byte) []byte
	// part hands a part on, mended, with others, or not at all. It returns false if no more are wanted.
	part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool
}

// listeningModel has an ear for each of its streams.
type listeningModel struct {
	fantasy.LanguageModel
	ear func() ear
}

// Stream implements fantasy.LanguageModel.
func (m listeningModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	own := m.ear()
	stream, err := m.LanguageModel.Stream(context.WithValue(ctx, earKey{}, own), call)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for part := range stream {
			if !own.part(part, yield) {
				return
			}
		}
	}, nil
}

// earKey is where the ear of a call is in its context.
type earKey struct{}

// listeningTransport lets the ears of calls read the answers to them.
type listeningTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t listeningTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	own, ok := r.Context().Value(earKey{}).(ear)
	if !ok || err != nil || response.StatusCode != http.StatusOK || strings.HasPrefix(response.Header.Get("Content-Type"), "application/vnd.amazon") {
		return response, err
	}
	response.Body = &heardBody{ReadCloser: response.Body, ear: own}
	return response, err
}

// listening is the client with a listeningTransport.
func listening(client *http.Client) *http.Client {
	return through(client, func(next http.RoundTripper) http.RoundTripper { return listeningTransport{next} })
}

const (
	// heardChunk is how much is read at once.
	heardChunk = 16 << 10
	// maxHeardLine is the longest line that is looked at: 16 MiB, more than an event with an image has. A longer one passes.
	maxHeardLine = 16 << 20
)

// heardBody is a body whose lines pass an ear. It hands on whole lines: who reads it makes nothing of less. A stream that ends
// within an event ends with an error, like one whose connection breaks, since some libraries take half an event for a whole one.
type heardBody struct {
	io.ReadCloser
	ear ear
	// in is the beginning of a line, out what is to be read, from done on.
	in, out []byte
	done    int
	chunk   []byte
	// passing is true until the end of a line that is too long.
	passing bool
	err     error
}

// Read implements io.Reader.
func (b *heardBody) Read(p []byte) (int, error) {
	for b.done == len(b.out) && b.err == nil {
		b.fill()
	}
	if b.done == len(b.out) {
		return 0, b.err
	}
	n := copy(p, b.out[b.done:])
	b.done += n
	return n, nil
}

// fill reads once.
func (b *heardBody) fill() {
	b.out, b.done = b.out[:0], 0
	if b.chunk == nil {
		b.chunk = make([]byte, heardChunk)
	}
	n, err := b.ReadCloser.Read(b.chunk)
	for rest := b.chunk[:n]; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		b.take(part, ended)
		rest = after
	}
	if err != nil {
		b.end(err)
	}
}

// take takes a piece of a line.
func (b *heardBody) take(part []byte, ended bool) {
	if b.passing || len(b.in)+len(part) > maxHeardLine {
		b.out = append(append(b.out, b.in...), part...)
		if b.in, b.passing = b.in[:0], !ended; ended {
			b.out = append(b.out, '\n')
		}
		return
	}
	if !ended {
		b.in = append(b.in, part...)
		return
	}
	if len(b.in) > 0 {
		b.in = append(b.in, part...)
		part = b.in
	}
	b.out = append(append(b.out, b.ear.line(part)...), '\n')
	b.in = b.in[:0]
}

// end deals with what has no line feed behind it when the body ends.
func (b *heardBody) end(err error) {
	orderly := errors.Is(err, io.EOF)
	switch b.err = err; {
	case orderly && cutOff(b.in):
		b.err = io.ErrUnexpectedEOF
	case orderly && len(b.in) > 0:
		b.out = append(b.out, b.ear.line(b.in)...)
	}
	b.in = nil
}

// cutOff reports whether a last line is an event that is not whole.
func cutOff(line []byte) bool {
	data, ok := eventData(line)
	if !ok {
		return len(line) > 0 && bytes.HasPrefix([]byte("data:"), line)
	}
	return !json.Valid(data) && !bytes.Equal(data, endOfEvents)
}

// endOfEvents is the last event of OpenAI's chat protocol.
var endOfEvents = []byte("[DONE]")

// eventData is the data of a line of server-sent events, if it has any.
func eventData(line []byte) ([]byte, bool) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	return bytes.TrimSpace(data), ok
}
