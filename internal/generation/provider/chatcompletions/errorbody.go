// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"parley.dev/parley/internal/generation/provider/rewrite"
	"parley.dev/parley/internal/generation/provider/transport"
)

// Client returns the client, which makes an object of an error that is none, such as the texts of Ollama: OpenAI's
// library fails to read such an answer, and loses the status with it.
func Client(client *http.Client) *http.Client {
	return transport.Wrap(client, func(next http.RoundTripper) http.RoundTripper { return errorTransport{next} })
}

type errorTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t errorTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	// What was read is what counts: the headers of an answer that breaks off still say when to try again.
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err == nil {
		body = withErrorObject(body)
	}
	response.Body, response.ContentLength = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err})),
		int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return response, nil
}

// broken is the end of an answer, or the error at which it broke off.
type broken struct{ err error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, cmp.Or(b.err, io.EOF) }

// withErrorObject is the body with an object as its error: a text becomes the message of one, and goes with the type
// that stands beside it.
func withErrorObject(body []byte) []byte {
	var fields map[string]json.RawMessage
	var fault object
	if json.Unmarshal(body, &fields) != nil || fields["error"] == nil || json.Unmarshal(fields["error"], &fault) == nil {
		return body
	}
	fault = object{}
	var said string
	if json.Unmarshal(fields["error"], &said) == nil {
		fault["message"], fault["type"] = said, fields["error_type"]
	}
	encoded, err := rewrite.Encode(object{"error": fault})
	if err != nil {
		return body
	}
	return encoded
}
