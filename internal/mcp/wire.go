// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/httpguard"
)

// versionHeader is the header with the version of the protocol.
const versionHeader = "Mcp-Protocol-Version"

// limits bound the answers of a server: an image of 512 KiB is 700 KiB of base64, and progress comes in many small
// events.
var limits = httpguard.Limits{Error: 64 << 10, Answer: 4 << 20, Event: 4 << 20, Stream: 64 << 20}

// foreignHostError is a request to another host than the server's, which would send it the headers.
type foreignHostError struct{ host string }

func (e *foreignHostError) Error() string {
	return fmt.Sprintf("the server points to another host, %s", e.host)
}

// wire sends requests to one server only, with its headers.
type wire struct {
	next    http.RoundTripper
	home    *url.URL
	headers http.Header
	// status of the newest answer; 0: there was none.
	status atomic.Int32
	// version of the protocol that a session has; nil before that.
	version atomic.Pointer[string]
	// foreign is a request that was refused because of its host: the protocol's library does not always report it.
	foreign atomic.Pointer[foreignHostError]
}

// newWire returns the client of a session, and its wire.
func newWire(client *http.Client, home *url.URL, headers http.Header) (*http.Client, *wire) {
	w := &wire{home: home, headers: headers}
	guarded := httpguard.Guard(client, limits)
	return httpguard.Wrap(guarded, func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	}), w
}

// setVersion sets the version of the session, which later requests send.
func (w *wire) setVersion(version string) { w.version.Store(&version) }

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != w.home.Scheme || r.URL.Host != w.home.Host {
		if r.Body != nil {
			_ = r.Body.Close() // It is not sent.
		}
		foreign := &foreignHostError{"one that cannot be shown"}
		if httpguard.Showable(r.URL.Host) {
			foreign.host = r.URL.Host
		}
		w.foreign.Store(foreign)
		return nil, foreign
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

// failure implements line.
func (w *wire) failure(_ context.Context, err error, notes *httpguard.Notes, secrets scrubber) *failure {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if f := hostFailure(err, w.foreign.Load()); f != nil {
		return f
	}
	if oversized := notes.Oversized(); oversized != nil {
		return fail(v1alpha1.MCPResponseInvalid, "its answer has more than %d bytes", oversized.Limit)
	}
	status := int(w.status.Load())
	answered := fmt.Sprintf("it answered %d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fail(v1alpha1.MCPAccessDenied, "%s", answered)
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut("it did not answer in time")
	case status >= http.StatusBadRequest:
		return fail(v1alpha1.MCPConnectionFailed, "%s", answered)
	}
	if words := networkProblem(err); words != "" {
		return fail(v1alpha1.MCPConnectionFailed, "%s", words)
	}
	if message := serverMessage(err); message != "" {
		return fail(v1alpha1.MCPResponseInvalid, "it answered: %s", scrubLine(message, secrets))
	}
	return fail(v1alpha1.MCPResponseInvalid, "its answer is not of the Model Context Protocol")
}

// hostFailure is a failure because of the host of a request; nil if it is none.
func hostFailure(err error, foreign *foreignHostError) *failure {
	if redirect, ok := errors.AsType[*httpguard.RedirectError](err); ok {
		return fail(v1alpha1.MCPHostForbidden,
			"it redirects (%d), which is not followed: name the url that it leads to", redirect.Status)
	}
	if _, ok := errors.AsType[*httpguard.ForbiddenHostError](err); ok {
		return fail(v1alpha1.MCPHostForbidden, "its host is an address of the node or of the pod")
	}
	if foreign != nil {
		return fail(v1alpha1.MCPHostForbidden, "%s", foreign)
	}
	return nil
}

// networkProblem describes a failed connection; empty if the error is another one.
func networkProblem(err error) string {
	var name *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var other net.Error
	switch {
	case errors.As(err, &name):
		return "the name of its host does not resolve"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "its host refuses the connection"
	case errors.As(err, &untrusted):
		return "its certificate is not trusted"
	case errors.As(err, &other):
		return "it cannot be reached"
	}
	return ""
}
