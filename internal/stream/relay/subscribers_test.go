// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

type anybody struct{}

func (anybody) Authorize(context.Context, string) error { return nil }

func (s *Store) readers(ep fence.Fence) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ensure(ep).subscribers)
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
	waiting.Until(t, 30*time.Second, "the subscriber is there", func() bool { return s.readers(episode1) == 1 })
	filler := fmt.Sprintf(`,"role":"Assistant","part":{"type":"Text","text":"%s"}}`, strings.Repeat("y", 60<<10))
	for seq := range int64(16) {
		check.OK(t, w.Append(seq+1, fmt.Appendf(nil, `{"seq":%d%s`, seq+1, filler)))
	}
	waiting.Until(t, 30*time.Second, "the subscriber is cut", func() bool { return s.readers(episode1) == 0 })
	check.OK(t, s.Close(episode1))
	got, _ := io.ReadAll(conn) // that it ends in an error or not is the network's business
	if bytes.Contains(got, []byte("closed")) {
		t.Error("the cut subscriber was told that the episode is whole")
	}
	check.Equal(t, "frames of the episode", 16, len(readAll(t, s, episode1, 0)))
}

// serve serves subscribers and the generator, the latter below /local.
func serve(t *testing.T, subscribers *Subscribers) string {
	t.Helper()
	subscribers.Authorizer = anybody{}
	mux := http.NewServeMux()
	mux.Handle("/", subscribers.Handler())
	mux.Handle("/local/", http.StripPrefix("/local", LocalHandler(subscribers.Store, &IssuerKeys{Now: time.Now})))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// ask makes a request as a subscriber and as the generator.
func ask(t *testing.T, method, url string, body io.Reader) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	check.OK(t, err)
	r.Header.Set("Authorization", "Bearer good")
	r.Header.Set(IncarnationHeader, "one")
	answer, err := http.DefaultClient.Do(r)
	check.OK(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func TestRequestsAreAnsweredWithTheirStatus(t *testing.T) {
	url := serve(t, &Subscribers{Store: newTestStore(t, Options{})})
	for _, c := range []struct {
		method, path, body string
		status             int
		words              string
	}{
		{"GET", "/readyz", "", 200, "ok"},
		{"GET", "/healthz", "", 404, ""},
		{"POST", "/v1/episodes/a/1/1/close", "", 404, ""},
		{"GET", "/v1/episodes/a.b/1/1", "", 400, "letters"},
		{"GET", "/v1/episodes/a/x/1", "", 400, "history version"},
		{"GET", "/v1/episodes/a/1/-1", "", 400, "attempt"},
		{"GET", "/v1/episodes/a/1/1?after=-1", "", 400, "after"},
		{"POST", "/local/v1/episodes/a/1/1/frames", "", 404, "not open"},
		{"PUT", "/local/v1/episodes/a/1/1", "", 201, `{"lastSeq":0}`},
		{"PUT", "/local/v1/episodes/a/1/1", "", 200, `{"lastSeq":0}`},
		{"POST", "/local/v1/episodes/a/1/1/frames", "{\"seq\":1}\n\n{\"seq\":2}\n", 200, `{"lastSeq":2}`},
		{"POST", "/local/v1/episodes/a/1/1/frames", `{"seq":4}`, 409, "does not follow"},
		{"POST", "/local/v1/episodes/a/1/1/frames", "x", 400, "decoding frame"},
		{"GET", "/local/v1/episodes/a/1/1", "", 200, "{\"seq\":1}\n{\"seq\":2}\n"},
		{"POST", "/local/v1/episodes/a/1/1/close", "", 204, ""},
		{"PUT", "/local/v1/episodes/a/1/1", "", 409, "closed"},
		{"GET", "/v1/episodes/a/1/1?after=1", "", 200, "{\"seq\":2}\n{\"closed\":true"},
		{"PUT", "/local/v1/episodes/a.b/1/1", "", 400, "letters"},
		{"PUT", "/local/v1/keys", `{"keys":[]}`, 400, ""},
	} {
		answer := ask(t, c.method, url+c.path, strings.NewReader(c.body))
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != c.status || !strings.Contains(string(body), c.words) {
			t.Errorf("%s %s: %d %s, %v", c.method, c.path, answer.StatusCode, body, err)
		}
	}
}

func TestRequestWithBodyIsRejectedImmediately(t *testing.T) {
	body, never := io.Pipe()
	defer never.Close()
	answer := ask(t, "GET", serve(t, &Subscribers{Store: newTestStore(t, Options{})})+"/v1/episodes/a/1/1", body)
	check.Equal(t, "the status", http.StatusBadRequest, answer.StatusCode)
}

func TestARelayHasOnlySoManyReaders(t *testing.T) {
	subscribers := &Subscribers{Store: newTestStore(t, Options{}), MaxStreams: 2}
	url := serve(t, subscribers) + "/v1/episodes/a/1/1"
	first := ask(t, "GET", url, nil)
	ask(t, "GET", url, nil)
	third := ask(t, "GET", url, nil)
	if third.StatusCode != http.StatusServiceUnavailable || third.Header.Get("Retry-After") == "" ||
		subscribers.Refused() != 1 {
		t.Errorf("the third reader got %s, Retry-After %q", third.Status, third.Header.Get("Retry-After"))
	}
	first.Body.Close()
	waiting.Until(t, 30*time.Second, "there is room again", func() bool { return subscribers.Streams() == 1 })
	check.Equal(t, "the next reader", http.StatusOK, ask(t, "GET", url, nil).StatusCode)
}
