// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// SharedVariable is the variable of the environment that names the socket of a control plane which several test
// binaries share. Package sharedcluster serves it.
const SharedVariable = "PARLEY_TEST_CLUSTER"

// RunShared is Run for a package whose tests can share a control plane with those of other packages: they use
// namespaces of their own, change no cluster-scoped object that others use, and run no manager of all namespaces.
func RunShared(m *testing.M, cluster **Cluster, begin ...Begin) int {
	return run(m, cluster, StartShared, begin)
}

// StartShared returns the control plane that test binaries share. If there is none, it starts one as Start does.
func StartShared(ctx context.Context) (*Cluster, error) {
	socket := os.Getenv(SharedVariable)
	if socket == "" {
		return Start(ctx)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connecting to the shared control plane: unset %s to start another one: %w", SharedVariable,
			err)
	}
	defer func() { _ = conn.Close() }() // Nothing is left to be sent or read.
	kubeconfig, err := io.ReadAll(conn)
	if err == nil && len(kubeconfig) == 0 {
		err = errors.New("it did not start: see the output of the program that serves it")
	}
	if err != nil {
		return nil, fmt.Errorf("reaching the shared control plane at %s: %w", socket, err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the shared control plane: %w", err)
	}
	return newCluster(cfg)
}

// Sharer hands a control plane to test binaries that connect to its listener. It starts the control plane when the
// first of them asks, because all test results may be in Go's cache.
type Sharer struct {
	// Listener accepts connections. Each connection gets the kubeconfig of the control plane, and is closed.
	Listener net.Listener
	// Start starts the control plane.
	Start func() (*Cluster, error)
	// Report reports an error.
	Report func(error)

	mu      sync.Mutex
	started bool
	stopped bool
	cluster *Cluster
}

// Serve hands out the control plane until the listener is closed.
func (s *Sharer) Serve() {
	for {
		conn, err := s.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.Report(fmt.Errorf("accepting a connection of a test binary: %w", err))
			continue
		}
		go s.answer(conn)
	}
}

// answer sends the kubeconfig. Without a control plane it sends nothing.
func (s *Sharer) answer(conn net.Conn) {
	defer func() { _ = conn.Close() }() // Nothing is left to be sent or read.
	cluster := s.ensure()
	if cluster == nil {
		return
	}
	kubeconfig, err := clientcmd.Write(*cluster.kubeconfig())
	if err == nil {
		_, err = conn.Write(kubeconfig)
	}
	if err != nil {
		s.Report(fmt.Errorf("sending the kubeconfig of the shared control plane: %w", err))
	}
}

// ensure returns the control plane; nil: it did not start, or has been stopped.
func (s *Sharer) ensure() *Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started && !s.stopped {
		s.started = true
		var err error
		if s.cluster, err = s.Start(); err != nil {
			s.Report(fmt.Errorf("starting the shared control plane: %w", err))
		}
	}
	return s.cluster
}

// Stop closes the listener, and stops the control plane if it was started.
func (s *Sharer) Stop() error {
	err := s.Listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Stop())
		s.cluster = nil
	}
	return err
}
