// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package slowclient_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/test/kit/check"
)

// served is a server, with HTTP/2 if asked for, that answers by handle.
func served(t *testing.T, http2 bool, handle func(*slowclient.Writer), timeout time.Duration) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		handle(slowclient.New(w, timeout))
	}))
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestClientThatDoesNotReadIsGivenUp(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			s := served(t, http2, func(w *slowclient.Writer) {
				for piece := make([]byte, 1<<20); w.Err() == nil; {
					_, _ = w.Write(piece)
					_ = w.Flush()
				}
				_, again := w.Write([]byte("more"))
				ended <- errors.Join(w.Err(), again)
			}, 100*time.Millisecond)
			response, err := s.Client().Get(s.URL)
			check.OK(t, err)
			defer response.Body.Close() // Without a read before.
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestAnswerMayRestBetweenPieces(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			const timeout = 50 * time.Millisecond
			s := served(t, http2, func(w *slowclient.Writer) {
				for _, piece := range []string{"one, ", "two, "} {
					_, _ = w.Write([]byte(piece))
					_ = w.Flush()
					rest := time.NewTimer(3 * timeout)
					<-rest.C
				}
				_, _ = w.Write([]byte("end"))
				_ = w.Flush()
			}, timeout)
			response, err := s.Client().Get(s.URL)
			check.OK(t, err)
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != "one, two, end" {
				t.Errorf("read %q, %v", body, err)
			}
		})
	}
}

func TestRecordedAnswersHaveNoDeadlines(t *testing.T) {
	recorded := httptest.NewRecorder()
	w := slowclient.New(recorded, time.Second)
	w.IgnoreReads()
	if _, err := w.Write([]byte("all")); err != nil || w.Flush() != nil || recorded.Body.String() != "all" {
		t.Errorf("recorded %q, %v", recorded.Body, err)
	}
}
