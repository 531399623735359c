// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import "net/http"

// through is the client with a transport around its own.
func through(client *http.Client, around func(next http.RoundTripper) http.RoundTripper) *http.Client {
	own := *client
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = around(own.Transport)
	return &own
}
