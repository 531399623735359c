// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
)

// ListenIn listens on an address within the network namespace of a process. A socket stays in the namespace that it was
// made in, whoever uses it.
func ListenIn(ctx context.Context, pid int, address string) (net.Listener, error) {
	type made struct {
		listener net.Listener
		err      error
	}
	done := make(chan made)
	go func() {
		// The thread changes its namespace for good: it is never unlocked, so that it ends with this goroutine.
		runtime.LockOSThread()
		listener, err := enterAndListen(ctx, pid, address)
		done <- made{listener, err}
	}()
	m := <-done
	return m.listener, m.err
}

func enterAndListen(ctx context.Context, pid int, address string) (net.Listener, error) {
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, fmt.Errorf("opening the cluster's network namespace: %w", err)
	}
	defer namespace.Close()
	if _, _, errno := syscall.RawSyscall(sysSetns, namespace.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return nil, fmt.Errorf("entering the cluster's network namespace: %w", errno)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening in the cluster's network namespace: %w", err)
	}
	return listener, nil
}
