// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intercept lets one interceptor follow both sides of a streamed call: the lines that the provider sends, and
// the parts that fantasy makes of them. So what fantasy drops or gets wrong can be repaired, each protocol by a package
// of its own. A call without an interceptor is read as if this package were not there.
package intercept

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/transport"
)

// Interceptor follows one streamed call. Both sides are called by the goroutine that reads the stream.
type Interceptor interface {
	// Line returns the line to read in place of one, which has no line feed; the same if there is nothing to repair. It
	// may not keep it. It should do no more than look for a few bytes in lines that need no repair: there is one for
	// each token.
	Line(line []byte) []byte
	// Events are the data of the events of a reply that came as one JSON document, because the server does not stream.
	Events(document []byte) [][]byte
	// Part hands a part on, repaired, with others, or not at all. It returns false if no more are wanted.
	Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool
}

// interceptedModel has an interceptor for each of its streams.
type interceptedModel struct {
	fantasy.LanguageModel
	begin func() Interceptor
}

// Model returns the model with an interceptor for each of its streams. Its client has to be one of Client.
func Model(model fantasy.LanguageModel, begin func() Interceptor) fantasy.LanguageModel {
	return interceptedModel{model, begin}
}

// Stream implements fantasy.LanguageModel.
func (m interceptedModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	interceptor := &holder{Interceptor: m.begin()}
	stream, err := m.LanguageModel.Stream(context.WithValue(ctx, interceptorKey{}, interceptor), call)
	if err != nil {
		interceptor.close()
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		defer interceptor.close()
		for part := range stream {
			if !interceptor.Part(part, yield) {
				return
			}
		}
	}, nil
}

// holder is the interceptor of a call, and the bodies of the answers to it: the providers' libraries do not close those
// of streams that end early.
type holder struct {
	Interceptor
	bodies []io.Closer
}

func (h *holder) close() {
	for _, body := range h.bodies {
		_ = body.Close() // Nothing more is read.
	}
}

// interceptorKey is where the interceptor of a call is in its context: fantasy hands that on to the transport, and
// nothing else of ours.
type interceptorKey struct{}

// Client returns the client, which lets the interceptors of calls read the answers to them.
func Client(client *http.Client) *http.Client {
	return transport.Wrap(client, func(next http.RoundTripper) http.RoundTripper { return interceptTransport{next} })
}

type interceptTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t interceptTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	held, ok := r.Context().Value(interceptorKey{}).(*holder)
	if !ok || err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	if isBinary(response) {
		response.Body = &messageBody{ReadCloser: response.Body, interceptor: held}
		return response, nil
	}
	if err := stream(response, held); err != nil {
		return nil, err
	}
	return response, nil
}

// isBinary reports whether the answer is a stream of AWS, which has no lines.
func isBinary(response *http.Response) bool {
	return strings.HasPrefix(response.Header.Get("Content-Type"), "application/vnd.amazon")
}

// EndOfEvents is the last event of OpenAI's Chat Completions protocol.
var EndOfEvents = []byte("[DONE]")

// EventData returns the data of a line of server-sent events, if it has any.
func EventData(line []byte) ([]byte, bool) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	return bytes.TrimSpace(data), ok
}
