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
	"slices"
	"strings"
	"syscall"

	"charm.land/fantasy"

	"parley.dev/parley/internal/netguard/httpguard"
)

// lost matches a call that the provider has not answered because of such an error.
func lost(matches func(error) bool) func(*findings) bool {
	return func(f *findings) bool { return f.lost != nil && matches(f.lost) }
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
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

// isBrokenOff: the connection was lost. A cancellation that is not the caller's is the peer's, and the error of an
// HTTP/2 peer that is shutting down has no exported type.
func isBrokenOff(err error) bool {
	return isAny(io.EOF, context.Canceled, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed)(err) ||
		fantasy.IsTransportError(err) || strings.Contains(err.Error(), "GOAWAY") ||
		strings.Contains(err.Error(), "http2: client connection lost")
}

func isOfNetwork(err error) bool { return isA[*net.OpError](err) || isA[*url.Error](err) }

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
