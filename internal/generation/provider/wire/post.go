// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"charm.land/fantasy"
)

// userAgent names Parley to providers.
const userAgent = "parley/v1beta1"

// Request is the HTTP request of a call.
type Request struct {
	URL string
	// Header are those of the protocol, such as the key. Those of the configuration and of the call go before them.
	Header map[string]string
	// Body is JSON.
	Body []byte
	// Sign signs the request as it is sent; nil: it has none.
	Sign func(ctx context.Context, request *http.Request, body []byte) error
}

// post makes the request. An answer with the status of an error is an error.
func (m *Model) post(ctx context.Context, r *Request, ofCall map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range r.Header {
		request.Header.Set(name, value)
	}
	for _, h := range m.spec.Headers {
		request.Header.Set(h.Name, h.Value)
	}
	for name, value := range ofCall {
		request.Header.Set(name, value)
	}
	request.Header.Set("User-Agent", userAgent)
	if r.Sign != nil {
		if err := r.Sign(ctx, request, r.Body); err != nil {
			return nil, fmt.Errorf("signing the request: %w", err)
		}
	}
	response, err := m.client.Do(request)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer closeRead(response.Body)
	body, _ := io.ReadAll(response.Body) // Of an answer that breaks off, the status and what came count.
	return nil, statusError(response.StatusCode, response.Header, body)
}

// statusError is an answer that is an error.
func statusError(status int, header http.Header, body []byte) error {
	headers := make(map[string]string, len(header))
	for name, values := range header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return &fantasy.ProviderError{
		Title: "the provider answered with an error", Message: fmt.Sprintf("HTTP status %d", status), StatusCode: status,
		ResponseHeaders: headers, ResponseBody: body,
	}
}

// EventError is an error that the provider reports in an event of a stream. Its data is JSON.
func EventError(data []byte) error {
	return &fantasy.ProviderError{
		Title: "the provider ended the stream with an error", Message: "see its event", ResponseBody: bytes.Clone(data),
	}
}

// IsError reports whether a value of a field named error is one. Some servers have the field in every event.
func IsError(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "{}", "false":
		return false
	}
	return true
}

const (
	// maxRestBytes and restTimeout bound what is read, and waited for, behind the last event.
	maxRestBytes = 4 << 10
	restTimeout  = 100 * time.Millisecond
)

// closeRead closes a body after what is left of it, if that is little: over HTTP/1.1 a connection whose answer was not
// read to the end is not used again.
func closeRead(body io.ReadCloser) {
	late := time.AfterFunc(restTimeout, func() { _ = body.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, body, maxRestBytes) // It is discarded.
	_ = body.Close()                                // Nothing more is read.
}

// requestID is the id that the provider gave the request; empty if it gave none.
func requestID(response *http.Response) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "Apim-Request-Id", "X-Generation-Id"} {
		if id := response.Header.Get(name); id != "" {
			return id
		}
	}
	return ""
}
