// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forward passes connections from a listener on to a fixed address.
//
// It is the only way into a cluster's network: the listener is made on the machine's loopback and handed to the
// process inside, and a socket stays in the network namespace it was made in.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Serve accepts connections until ctx ends, and returns when every connection is closed. A connection whose
// target does not answer is closed, which a client sees as a server that hangs up. What closing a connection says is of
// no use to anyone: both ends notice by themselves what did not arrive.
func Serve(ctx context.Context, ln net.Listener, target string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()

	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := ln.Accept()
		if err != nil {
			cancel()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("accepting a connection for %s: %w", target, err)
		}
		open.Go(func() { pass(ctx, conn, target) })
	}
}

// pass copies both ways; each side's end of stream reaches the other, as kubectl exec needs.
func pass(ctx context.Context, client net.Conn, target string) {
	defer func() { _ = client.Close() }()
	var d net.Dialer
	server, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()

	var up sync.WaitGroup
	up.Go(func() { copyAndClose(server, client) })
	copyAndClose(client, server)
	up.Wait()
}

// copyAndClose copies until the source ends and then tells the destination. A failed copy ends both directions.
func copyAndClose(dst, src net.Conn) {
	if _, err := io.Copy(dst, src); err != nil {
		_, _ = dst.Close(), src.Close()
		return
	}
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails only if the connection is gone, which the other direction notices
	}
}
