// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"parley.dev/parley/internal/netguard/hostlist"
)

// outgoing sends requests over connections that are made as its settings say. When the CA file has changed, new
// connections are made; requests under way keep theirs.
type outgoing struct {
	settings Settings

	mu      sync.Mutex
	current *http.Transport
	read    fileVersion // of the CA file, as current trusts it
}

// fileVersion tells one content of a file from another. The zero one is that of a file that does not exist.
type fileVersion struct {
	modified time.Time
	size     int64
}

// RoundTrip implements http.RoundTripper.
func (o *outgoing) RoundTrip(r *http.Request) (*http.Response, error) {
	return o.transport().RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (o *outgoing) CloseIdleConnections() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != nil {
		o.current.CloseIdleConnections()
	}
}

// transport has the connections that are made as the settings and the CA file say now.
func (o *outgoing) transport() *http.Transport {
	o.mu.Lock()
	defer o.mu.Unlock()
	version := o.caVersion()
	if o.current != nil && version == o.read {
		return o.current
	}
	if o.current != nil {
		o.current.CloseIdleConnections()
	}
	o.current, o.read = o.settings.transport(), version
	return o.current
}

// caVersion is that of the CA file, unless it does not count.
func (o *outgoing) caVersion() fileVersion {
	if o.settings.CAFile == "" || o.settings.roots != nil {
		return fileVersion{}
	}
	info, err := os.Stat(o.settings.CAFile)
	if err != nil {
		return fileVersion{}
	}
	return fileVersion{info.ModTime(), info.Size()}
}

func (s Settings) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 256
	t.MaxIdleConnsPerHost = 64
	t.Proxy = s.proxy()
	t.OnProxyConnectResponse = checkTunnel
	t.DialContext = reach{loopback: s.Loopback}.dial
	t.TLSClientConfig = &tls.Config{RootCAs: s.trusted(), MinVersion: tls.VersionTLS12}
	t.MaxResponseHeaderBytes = maxHeaderBytes
	t.ResponseHeaderTimeout = headerTimeout
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	return t
}

// proxy chooses the proxy of a request. A request that goes through one is refused here if its host is an address that
// is never called: the address that is connected to, which reach checks, is the proxy's.
func (s Settings) proxy() func(*http.Request) (*url.URL, error) {
	choose := s.Proxy.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) {
		proxy, err := choose(r.URL)
		if err != nil || proxy == nil {
			return nil, err
		}
		if hostlist.ForbiddenAddress(r.URL, s.Loopback) || hostlist.AmbiguousAddress(r.URL) {
			return nil, &ForbiddenHostError{r.URL.Host}
		}
		if s.routed && len(s.ProxyHosts) > 0 && !s.ProxyHosts.Names(proxy) {
			return nil, &ForbiddenHostError{proxy.Host}
		}
		return proxy, nil
	}
}

// checkTunnel refuses what a proxy answers when it does not connect to the host.
func checkTunnel(_ context.Context, proxy *url.URL, request *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: proxy.Host, Host: request.Host, Status: answer.StatusCode}
}

// trusted are the authorities that certificates may be of; nil: those of the system alone.
func (s Settings) trusted() *x509.CertPool {
	if s.roots != nil {
		return s.roots
	}
	bundles := [][]byte{s.caBundle, s.readCAFile()}
	if len(bundles[0]) == 0 && len(bundles[1]) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // A system without authorities trusts these.
		pool = x509.NewCertPool()
	}
	for _, bundle := range bundles {
		pool.AppendCertsFromPEM(bundle)
	}
	return pool
}

// readCAFile is the content of the CA file, which has certificates in it; nil: there is none. A file that cannot be
// used is logged and left out, since most hosts are called without it.
func (s Settings) readCAFile() []byte {
	if s.CAFile == "" {
		return nil
	}
	bundle, err := os.ReadFile(s.CAFile)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		slog.Warn("the CA file cannot be read: its authorities are not trusted", slog.Any("error", err))
		return nil
	case !x509.NewCertPool().AppendCertsFromPEM(bundle):
		slog.Warn("the CA file holds no certificate in PEM: no authority is added", slog.String("file", s.CAFile))
		return nil
	}
	return bundle
}
