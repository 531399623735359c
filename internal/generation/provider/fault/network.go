// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"charm.land/fantasy"

	"parley.dev/parley/internal/netguard/httpguard"
)

// network is how the network ended a call.
type network string

const (
	// networkInvalidURL: there is nobody to call.
	networkInvalidURL network = "InvalidURL"
	// networkUnresolved: the host's name is not known.
	networkUnresolved network = "Unresolved"
	// networkNoTLS: who answers speaks no TLS, or does not agree on how to.
	networkNoTLS network = "NoTLS"
	// networkUntrusted: who answers cannot prove who it is.
	networkUntrusted network = "Untrusted"
	// networkNoProxy: the proxy is not reached.
	networkNoProxy network = "NoProxy"
	// networkRefused: nobody listens, or no way leads there.
	networkRefused network = "Refused"
	// networkTimedOut: nobody answered in time.
	networkTimedOut network = "TimedOut"
	// networkBrokenOff: the connection was lost.
	networkBrokenOff network = "BrokenOff"
)

// networkKinds: the first that matches wins; what is left of the network's own errors is networkBrokenOff.
var networkKinds = []struct {
	kind    network
	matches func(error) bool
}{
	{networkInvalidURL, isInvalidURL},
	{networkUntrusted, isA[*tls.CertificateVerificationError]},
	{networkNoTLS, isNoTLS},
	{networkNoProxy, isOfProxy},
	{networkUnresolved, isA[*net.DNSError]},
	{networkRefused, isAny(syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH)},
	// A cancellation that is not the caller's is the peer's.
	{networkBrokenOff, isAny(io.EOF, io.ErrUnexpectedEOF, context.Canceled, syscall.ECONNRESET, syscall.EPIPE,
		net.ErrClosed)},
	{networkBrokenOff, fantasy.IsTransportError},
	{networkBrokenOff, isGoAway},
	{networkTimedOut, isTimeout},
	{networkBrokenOff, isA[*net.OpError]},
	{networkBrokenOff, isA[*url.Error]},
}

// networkOf says how the network ended the call, and whom it was to reach as far as that is known and no secret.
func networkOf(err error, baseURL string) (network, string) {
	for _, k := range networkKinds {
		if k.matches(err) {
			return k.kind, hostOf(err, baseURL)
		}
	}
	return "", ""
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
}

// isInvalidURL: net/http tells these apart in words only.
func isInvalidURL(err error) bool {
	e, ok := errors.AsType[*url.Error](err)
	if !ok || e.Err == nil {
		return false
	}
	why := e.Err.Error()
	return e.Op == "parse" || strings.Contains(why, "unsupported protocol scheme") ||
		strings.Contains(why, "no Host in request URL")
}

// alertInternalError is TLS's alert for a fault of the peer that has nothing to do with TLS (RFC 8446, section 6).
const alertInternalError = 80

func isNoTLS(err error) bool {
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return alert != alertInternalError
	}
	return isA[tls.RecordHeaderError](err) || errors.Is(err, http.ErrSchemeMismatch)
}

// isOfProxy: net/http marks the errors of connecting to a proxy so.
func isOfProxy(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "proxyconnect"
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// isGoAway: the error of an HTTP/2 peer that is shutting down has no exported type.
func isGoAway(err error) bool {
	return err != nil &&
		(strings.Contains(err.Error(), "GOAWAY") || strings.Contains(err.Error(), "http2: client connection lost"))
}

// hostOf is the host that could not be resolved, or else the proxy, or the host of baseURL; empty if unknown.
func hostOf(err error, baseURL string) string {
	var host string
	if isOfProxy(err) { // Nobody else was called.
		return "The proxy"
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		host = e.Name
	}
	if u, err := url.Parse(baseURL); err == nil {
		host = cmp.Or(host, u.Hostname())
	}
	if !httpguard.Showable(host) {
		return ""
	}
	return host
}
