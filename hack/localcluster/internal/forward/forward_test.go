// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// serve starts a forwarder; the returned channel gives Serve's result.
func serve(ctx context.Context, t *testing.T, target string) (addr string, result <-chan error) {
	t.Helper()
	ln, done := listen(t), make(chan error, 1)
	go func() { done <- Serve(ctx, ln, target) }()
	return ln.Addr().String(), done
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func finished(t *testing.T, result <-chan error) {
	t.Helper()
	select {
	case err := <-result:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the forwarder did not end")
	}
}

func TestHalfClosedConnectionStillForwardsOtherDirection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := listen(t)
	go func() {
		conn, err := target.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		question, _ := io.ReadAll(conn) // ends only when the client's end of stream arrives
		_, _ = conn.Write(append([]byte("you said "), question...))
	}()
	addr, result := serve(ctx, t, target.Addr().String())
	conn := dial(t, addr)
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != "you said hello" {
		t.Errorf("got %q, %v", answer, err)
	}
	cancel()
	finished(t, result)
}

func TestUnreachableTargetDoesNotStopTheForwarder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addr, result := serve(ctx, t, "127.0.0.1:1") // A port of this range is never given to a listener, such as serve's.
	for range 2 {
		if b, err := io.ReadAll(dial(t, addr)); len(b) != 0 {
			t.Errorf("got %q, %v", b, err)
		}
	}
	cancel()
	finished(t, result)
}

func TestTheEndOfTheContextClosesOpenConnections(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := listen(t)
	addr, result := serve(ctx, t, target.Addr().String())
	client := dial(t, addr)
	held, err := target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	cancel()
	finished(t, result)
	if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v from a closed connection", n, err)
	}
}
