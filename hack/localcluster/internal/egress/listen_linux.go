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
// made in, whoever uses it; this program stays in its own.
func ListenIn(ctx context.Context, pid int, address string) (listener net.Listener, err error) {
	onThreadOfItsOwn(func() { listener, err = enterAndListen(ctx, pid, address) })
	return listener, err
}

// onThreadOfItsOwn runs a function that changes its thread for good, and returns when it has. The thread is never
// unlocked, so that it ends with its goroutine. The main thread cannot end: the runtime would keep it, changed, and all
// that /proc says of this process would be what the main thread is. So the main thread is held while another one works.
func onThreadOfItsOwn(change func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			onThreadOfItsOwn(change)
			return
		}
		change()
	}()
	<-done
}

func enterAndListen(ctx context.Context, pid int, address string) (net.Listener, error) {
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, fmt.Errorf("opening the cluster's network namespace: %w", err)
	}
	defer func() { _ = namespace.Close() }() // it is only entered
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
