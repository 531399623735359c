// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rewrite changes the bodies of requests. Of a JSON document it replaces single objects; every other byte stays
// as it was, so that nothing that is said changes on its way.
package rewrite

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// Request returns the request with another body. A transport must not change its caller's request.
func Request(r *http.Request, rewrite func(body []byte) ([]byte, error)) (*http.Request, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // What was read is what counts.
	if err != nil {
		return nil, err
	}
	if body, err = rewrite(body); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}

// Encode returns the value as JSON in which texts are as they were: "<", ">" and "&" need no escape between programs.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
