// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"parley.dev/parley/internal/netguard/hostlist"
)

// Within returns the client for calls to these hosts alone; to all if there are none. It looks at the URL that is
// called, whatever it was made from.
func Within(client *http.Client, hosts hostlist.List) *http.Client {
	if len(hosts) == 0 {
		return client
	}
	return Wrap(client, func(next http.RoundTripper) http.RoundTripper { return withinTransport{next, hosts} })
}

type withinTransport struct {
	next  http.RoundTripper
	hosts hostlist.List
}

// RoundTrip implements http.RoundTripper.
func (t withinTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.hosts.Names(r.URL) {
		if r.Body != nil {
			_ = r.Body.Close() // It is not sent.
		}
		return nil, &ForbiddenHostError{r.URL.Host}
	}
	return t.next.RoundTrip(r)
}

// reach restricts the addresses that a client may connect to.
type reach struct{ loopback bool }

// dial connects as net/http does by default, but never to an address of the node or of its cloud's metadata service,
// whatever name led there: who may write a baseURL must not have the node's credentials.
func (r reach) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: r.check}
	return dialer.DialContext(ctx, network, address)
}

// check is called with the address that a name was resolved to, before each connection.
func (r reach) check(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err == nil && (hostlist.OfTheNode(to.Addr()) || !r.loopback && hostlist.OfThePod(to.Addr())) {
		return &ForbiddenHostError{to.Addr().String()}
	}
	return nil
}
