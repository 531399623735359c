// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testmanager"
	"parley.dev/parley/test/kit/waiting"
)

// holdsMessages is a way to the API server on which what asks for all messages waits until it is let through.
type holdsMessages struct {
	next   http.RoundTripper
	let    <-chan struct{}
	waiter chan<- struct{}
}

// RoundTrip implements http.RoundTripper.
func (h *holdsMessages) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/chatmessages") && r.Method == http.MethodGet {
		select {
		case h.waiter <- struct{}{}:
		default:
		}
		select {
		case <-h.let:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return h.next.RoundTrip(r)
}

func TestManagerIsReadyAfterCacheSync(t *testing.T) {
	let, asked := make(chan struct{}), make(chan struct{}, 1)
	config := rest.CopyConfig(cluster.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &holdsMessages{next, let, asked} })
	address := unused(t)
	stop, err := testmanager.Start(t.Context(), config, func(o *testmanager.Options) {
		o.Manager.HealthProbeBindAddress = address
	})
	check.OK(t, err)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	answers := func(path string, status int) func() bool {
		return func() bool {
			response, err := http.Get("http://" + address + path)
			if err != nil {
				return false
			}
			_ = response.Body.Close() // Its status says all.
			return response.StatusCode == status
		}
	}
	<-asked
	waiting.Until(t, patience, "it lives", answers("/healthz", http.StatusOK))
	waiting.Until(t, patience, "it is not ready", answers("/readyz", http.StatusInternalServerError))
	close(let)
	waiting.Until(t, patience, "it is ready", answers("/readyz", http.StatusOK))
}

// unused is an address at which nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	defer func() { _ = listener.Close() }() // Nobody has connected.
	return listener.Addr().String()
}
