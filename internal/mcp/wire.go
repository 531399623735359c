// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync/atomic"

	"parley.dev/parley/internal/netguard/httpguard"
)

// limits are what is read of a server's answers: an image of 512 KiB is 700 KiB of base64, and progress comes in many
// small events.
var limits = httpguard.Limits{Error: 64 << 10, Answer: 4 << 20, Event: 4 << 20, Stream: 64 << 20}

// elsewhereError is a request to another host than the server's: its headers would go along.
type elsewhereError struct{ host string }

func (e *elsewhereError) Error() string {
	return fmt.Sprintf("the server points to another host, %s", e.host)
}

// wire sends requests to one server, with its headers, and to nobody else.
type wire struct {
	next    http.RoundTripper
	home    *url.URL
	headers http.Header
	// status of the newest answer; 0: there was none.
	status atomic.Int32
	// version of the protocol that a session has; nil before that.
	version atomic.Pointer[string]
	// strayed is a request that was refused because of its host: the protocol's library does not always tell.
	strayed atomic.Pointer[elsewhereError]
}

// newWire returns the client of a session, and what it remembers of it.
func newWire(client *http.Client, home *url.URL, headers http.Header) (*http.Client, *wire) {
	w := &wire{home: home, headers: headers}
	guarded := httpguard.Guard(client, limits)
	return httpguard.Wrap(guarded, func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	}), w
}

// versionHeader is the header with the version of the protocol.
const versionHeader = "Mcp-Protocol-Version"

// agree has the requests from now on say the version of the session.
func (w *wire) agree(version string) { w.version.Store(&version) }

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != w.home.Scheme || r.URL.Host != w.home.Host {
		if r.Body != nil {
			_ = r.Body.Close() // It is not sent.
		}
		host := "one that cannot be shown"
		if httpguard.Showable(r.URL.Host) {
			host = r.URL.Host
		}
		strayed := &elsewhereError{host}
		w.strayed.Store(strayed)
		return nil, strayed
	}
	r = r.Clone(r.Context())
	if version := w.version.Load(); version != nil && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, *version)
	}
	maps.Copy(r.Header, w.headers)
	response, err := w.next.RoundTrip(r)
	if err == nil {
		w.status.Store(int32(response.StatusCode)) // Three digits.
	}
	return response, err
}
