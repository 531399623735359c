// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpguard makes HTTP clients for hosts that users name: models, MCP servers, and hosts of files. No request
// leaves through them for a host that may not be called, with or without a proxy, no redirect is followed, and no
// answer is read beyond its bounds. What an answer says of itself, and when something of it came last, is kept for
// those who have to tell why a call failed.
package httpguard

import (
	"crypto/x509"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"parley.dev/parley/internal/netguard/hostlist"
)

const (
	// maxHeaderBytes is the most that the headers of an answer may have: 128 KiB. Go's own limit is 10 MiB.
	maxHeaderBytes = 128 << 10
	// headerTimeout is how long an answer's headers may take. It is a second line: the silence timeout of a
	// ChatModelConfig, which cannot be longer than v1beta1.MaxSilenceTimeout, ends a call before.
	headerTimeout = 55 * time.Minute
)

// A connection of HTTP/2 that brings nothing for pingAfter is checked by a ping. Without an answer within pingTimeout
// it is closed: its streams fail, and new calls use another one. All calls of a host share a connection. Without pings,
// one that the network has dropped would delay them all, until the kernel ends it after a quarter of an hour.
var pingAfter, pingTimeout = 30 * time.Second, 15 * time.Second

// Settings say how a client connects. The zero Settings connect without a proxy and trust the system's authorities.
type Settings struct {
	// Loopback lets the client connect to loopback addresses, for pods that also run a model, an MCP server or a proxy.
	Loopback bool
	// Proxy says which calls go through which proxy.
	Proxy httpproxy.Config
	// CAFile is a file of certificates in PEM whose authorities are trusted in addition to the system's. It is read again
	// when it changes, and may be missing; empty: there is none.
	CAFile string
	// ProxyHosts are the hosts at which the proxy of a Route may be; empty: all.
	ProxyHosts hostlist.List

	// caBundle has further certificates, and roots are the only ones that are trusted, if set.
	caBundle []byte
	roots    *x509.CertPool
	// routed is whether the proxy is that of a Route.
	routed bool
}

// Route is how the calls of one model differ from the Settings of its pod.
type Route struct {
	// Proxy is the URL of the proxy that all calls go through, in place of those of the Settings, with its user and
	// password; empty: those.
	Proxy string
	// NoProxy are hosts that are called without a proxy: as well as those of the Settings, unless Proxy is set.
	NoProxy []string
	// CABundle has certificates in PEM whose authorities are trusted as well.
	CABundle []byte
}

// IsZero reports whether calls do not differ from the Settings.
func (r Route) IsZero() bool { return r.Proxy == "" && len(r.NoProxy) == 0 && len(r.CABundle) == 0 }

// With returns the settings for the calls of a route.
func (s Settings) With(r Route) Settings {
	noProxy := r.NoProxy
	if r.Proxy != "" {
		s.Proxy = httpproxy.Config{HTTPProxy: r.Proxy, HTTPSProxy: r.Proxy}
		s.routed = true
	} else if s.Proxy.NoProxy != "" {
		noProxy = append([]string{s.Proxy.NoProxy}, noProxy...)
	}
	s.Proxy.NoProxy = strings.Join(noProxy, ",")
	s.caBundle = r.CABundle
	return s
}

// Client returns a client for the calls of models and for fetching files, to be shared by all of them. It keeps
// connections open between calls: opening one costs more than a call's own work. It follows no redirects, and connects
// to no address of the node, nor to the pod itself unless Loopback is set.
func (s Settings) Client() *http.Client {
	return &http.Client{Transport: &outgoing{settings: s}, CheckRedirect: Stay}
}

// Trusting returns a copy of a client of Settings, with connections of its own, that trusts these authorities and no
// others.
func Trusting(client *http.Client, roots *x509.CertPool) *http.Client {
	settings := client.Transport.(*outgoing).settings
	settings.roots = roots
	return settings.Client()
}

// Stay is the CheckRedirect of a client that follows no redirect, and hands it to its caller.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Wrap returns a copy of the client with a transport around its own.
func Wrap(client *http.Client, around func(next http.RoundTripper) http.RoundTripper) *http.Client {
	wrapped := *client
	if wrapped.Transport == nil {
		wrapped.Transport = http.DefaultTransport
	}
	wrapped.Transport = around(wrapped.Transport)
	return &wrapped
}
