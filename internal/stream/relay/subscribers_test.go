// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
)

type anybody struct{}

func (anybody) Authorize(context.Context, string) error { return nil }

func (e *episode) readers() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.subscribers)
}

func TestSlowSubscriberIsDisconnectedWithoutBlockingWriter(t *testing.T) {
	s := newTestStore(t, Options{})
	server := httptest.NewUnstartedServer((&Subscribers{Store: s, Authorizer: anybody{},
		WriteTimeout: 50 * time.Millisecond}).Handler())
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
			t.Error(err)
		}
		return ctx
	}
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	check.OK(t, err)
	defer conn.Close()
	check.OK(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	w := openWriter(t, s, episode1)
	fmt.Fprintf(conn, "GET /v1/episodes/%s HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer x\r\n\r\n", episode1)
	waitUntil(t, "the subscriber is there", func() bool { return s.lookup(episode1).readers() == 1 })
	filler := fmt.Sprintf(`,"role":"Assistant","part":{"type":"Text","text":"%s"}}`, strings.Repeat("y", 60<<10))
	for seq := range int64(16) {
		check.OK(t, w.Append(seq+1, fmt.Appendf(nil, `{"seq":%d%s`, seq+1, filler)))
	}
	waitUntil(t, "the subscriber is cut", func() bool { return s.lookup(episode1).readers() == 0 })
	check.OK(t, s.Close(episode1))
	got, _ := io.ReadAll(conn) // that it ends in an error or not is the network's business
	if bytes.Contains(got, []byte("closed")) {
		t.Error("the cut subscriber was told that the episode is whole")
	}
	check.Equal(t, "frames of the episode", 16, len(readAll(t, s, episode1, 0)))
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
