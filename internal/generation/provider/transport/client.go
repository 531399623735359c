// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transport is the HTTP side of a model's calls. No request leaves through it for a host that may not be
// called, no redirect is followed, and no answer is read beyond its bounds; what an answer says of itself, and when
// something of it came last, is kept for those who have to tell why a call failed.
package transport

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"parley.dev/parley/api/v1alpha1"
)

const (
	// maxHeaderBytes is the most that the headers of an answer may have: 128 KiB. Go's own limit is 10 MiB.
	maxHeaderBytes = 128 << 10
	// headerTimeout is how long an answer's headers may take. It is a second line: the silence timeout of a
	// configuration, which cannot be longer, ends a call before.
	headerTimeout = v1alpha1.MaxSilenceTimeout
)

// NewClient returns a client for the calls of models and for fetching files, to be shared by all of them. It keeps
// connections open between calls: opening one costs more than a call's own work. It follows no redirects, and connects
// neither to addresses of the node nor to the pod itself.
func NewClient() *http.Client { return newClient(reach{}) }

// NewLoopbackClient is NewClient for pods that also run a model or an MCP server: it connects to loopback addresses.
func NewLoopbackClient() *http.Client { return newClient(reach{loopback: true}) }

func newClient(r reach) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 256
	t.MaxIdleConnsPerHost = 64
	t.DialContext = r.dial
	t.MaxResponseHeaderBytes = maxHeaderBytes
	t.ResponseHeaderTimeout = headerTimeout
	return &http.Client{Transport: t, CheckRedirect: stay}
}

// Trusting returns a copy of a client of NewClient, with connections of its own, that trusts these authorities and no
// others.
func Trusting(client *http.Client, roots *x509.CertPool) *http.Client {
	trusting := *client
	t := client.Transport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	trusting.Transport = t
	return &trusting
}

// stay is the CheckRedirect of a client that hands redirects to its caller.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Wrap returns a copy of the client with a transport around its own.
func Wrap(client *http.Client, around func(next http.RoundTripper) http.RoundTripper) *http.Client {
	wrapped := *client
	if wrapped.Transport == nil {
		wrapped.Transport = http.DefaultTransport
	}
	wrapped.Transport = around(wrapped.Transport)
	return &wrapped
}
