// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"io"
	"net/http"
)

// rewritten is the request with another body. A transport must not change its caller's request.
func rewritten(r *http.Request, rewrite func(body []byte) ([]byte, error)) (*http.Request, error) {
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
