// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/kit/proxytest"
)

// network is between a client and a server. It can drop what the connections carry that are open, without closing them,
// as a firewall does that has lost its state.
type network struct {
	net.Listener
	server string
	// drops is how many of the connections are dead.
	drops, connections atomic.Int32
}

// newNetwork returns a network to the server, and where it is reached.
func newNetwork(t *testing.T, server string) (n *network, at string) {
	t.Helper()
	to, err := url.Parse(server)
	check.OK(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	n = &network{Listener: listener, server: to.Host}
	go n.run(t.Context())
	_, port, err := net.SplitHostPort(listener.Addr().String())
	check.OK(t, err)
	return n, "https://localhost:" + port
}

func (n *network) run(ctx context.Context) {
	for {
		client, err := n.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
		number := n.connections.Add(1)
		go n.carry(number, client, server)
		go n.carry(number, server, client)
	}
}

// carry copies what comes, until the connection is dead.
func (n *network) carry(number int32, from, to net.Conn) {
	buffer := make([]byte, 4<<10)
	for {
		read, err := from.Read(buffer)
		isDead := number <= n.drops.Load()
		if err == nil && !isDead {
			_, err = to.Write(buffer[:read])
		}
		if err != nil {
			if !isDead {
				_ = to.Close()
			}
			return
		}
	}
}

func (n *network) dropOpen() { n.drops.Store(n.connections.Load()) }

func TestDeadConnectionIsReplaced(t *testing.T) {
	httpguard.PingSoon(t)
	authority := proxytest.NewAuthority(t)
	server := authority.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "Hi")
		if r.URL.Path == "/silent" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}), "localhost")
	network, at := newNetwork(t, server.URL)
	client := httpguard.Settings{Loopback: true}.With(httpguard.Route{CABundle: authority.PEM}).Client()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	get := func(path string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+path, http.NoBody)
		check.OK(t, err)
		response, err := client.Do(request)
		check.OK(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		check.Equal(t, "version of HTTP", 2, response.ProtoMajor)
		return response
	}
	silent := get("/silent")
	network.dropOpen()
	_, err := io.ReadAll(silent.Body)
	e := fault.Classify(err, fault.Subject{Config: "main", Spec: providertest.Chat.Spec(at)})
	check.Equal(t, "the call under way", []any{v1beta1.ErrorProviderUnavailable, true}, []any{e.Reason, e.Retryable})
	text, err := io.ReadAll(get("/").Body)
	check.OK(t, err)
	check.Equal(t, "the next call", "Hi", string(text))
	check.Equal(t, "connections", 2, network.connections.Load())
}
