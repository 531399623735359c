// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxytest has an HTTP proxy and a private authority, as companies run them: clients reach hosts by the proxy
// alone, and trust them by the authority alone.
package proxytest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// Proxy is an HTTP proxy. It connects to its target, whatever host it is asked for, so that tests can use names that
// nobody else resolves.
type Proxy struct {
	// URL of the proxy.
	URL string
	// User and Password that it wants, if User is not empty.
	User, Password string
	// Status refuses every call with it; 0: none.
	Status int

	target string
	mu     sync.Mutex
	asked  []string
}

// New starts a proxy that connects to the server at the URL, until the test ends.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	u, err := url.Parse(target)
	check.OK(t, err)
	p := &Proxy{target: u.Host}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Asked are the calls so far, such as "CONNECT models.test:443" or "POST models.test".
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host)
	p.mu.Unlock()
	request := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	user, password, _ := request.BasicAuth()
	switch {
	case p.Status != 0:
		w.WriteHeader(p.Status)
	case p.User != "" && (user != p.User || password != p.Password):
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.WriteHeader(http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		p.tunnel(r.Context(), w)
	default:
		p.forward(w, r)
	}
}

// tunnel copies bytes between the client and the target until one of them ends.
func (p *Proxy) tunnel(ctx context.Context, w http.ResponseWriter) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	w.WriteHeader(http.StatusOK)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(server, buffered)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	copying.Wait()
}

// forward sends the request to the target, and its answer back as it comes.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Host = "", p.target
	out.Header.Del("Proxy-Authorization")
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}
