// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"parley.dev/parley/test/kit/check"
)

// serve shares what start starts with the processes that find the socket in their environment.
func serve(t *testing.T, start func() (*Cluster, error)) (reported *atomic.Int32) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	check.OK(t, err)
	reported = &atomic.Int32{}
	sharer := &Sharer{Listener: listener, Start: start, Report: func(error) { reported.Add(1) }}
	var serving sync.WaitGroup
	serving.Go(sharer.Serve)
	t.Cleanup(func() {
		if err := sharer.Stop(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	t.Setenv(SharedVariable, socket)
	return reported
}

func TestTestBinariesShareOneControlPlane(t *testing.T) {
	var started atomic.Int32
	serve(t, func() (*Cluster, error) {
		started.Add(1)
		return &Cluster{Config: &rest.Config{Host: "https://127.0.0.1:1", BearerToken: "t",
			TLSClientConfig: rest.TLSClientConfig{CertData: []byte("cert"), KeyData: []byte("key"), CAData: []byte("ca")}}}, nil
	})
	var connecting sync.WaitGroup
	for range 3 {
		connecting.Go(func() {
			// The certificates are none, so the client cannot be made; what is read until then is the point.
			if _, err := StartShared(t.Context()); err == nil || !strings.Contains(err.Error(), "creating a client") {
				t.Error(err)
			}
		})
	}
	connecting.Wait()
	check.Equal(t, "for three test binaries control planes were started", 1, started.Load())
}

func TestControlPlaneStartFailureIsReported(t *testing.T) {
	reported := serve(t, func() (*Cluster, error) { return nil, errors.New("no etcd") })
	for range 2 {
		if _, err := StartShared(t.Context()); err == nil || !strings.Contains(err.Error(), "it did not start") {
			t.Error(err)
		}
	}
	check.Equal(t, "it was reported times", 1, reported.Load())
}
