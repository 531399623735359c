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
	"testing/iotest"
	"testing/synctest"
	"time"

	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/test/kit/check"
)

// endless sends one byte after another.
type endless struct{}

func (endless) Read([]byte) (int, error) { return 1, nil }

func TestClientThatSendsTooSlowlyIsRefused(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, slowclient.NewReader(r.Body, w, 1<<40, 100*time.Millisecond))
				ended <- err
			}))
			s.EnableHTTP2 = http2
			s.StartTLS()
			t.Cleanup(s.Close)
			if response, err := s.Client().Post(s.URL, "", endless{}); err == nil {
				check.OK(t, response.Body.Close())
			}
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// deadline is an answer that records the last deadline of reads.
type deadline struct {
	http.ResponseWriter
	time.Time
}

// SetReadDeadline is for http.ResponseController.
func (d *deadline) SetReadDeadline(at time.Time) error {
	d.Time = at
	return nil
}

// slow takes 3 seconds for a byte.
type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) {
	<-time.After(3 * time.Second)
	return s.Reader.Read(p)
}

func TestEachPieceHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &deadline{}
		from := iotest.OneByteReader(slow{io.LimitReader(endless{}, 3)})
		r := slowclient.NewReader(from, to, 2, 10*time.Second)
		for i, left := range []time.Duration{10, 7, 10} {
			<-time.After(time.Minute) // The byte before is used.
			before := time.Now()
			n, err := r.Read(make([]byte, 8))
			check.OK(t, err)
			check.Equal(t, "bytes", 1, n)
			if got := to.Sub(before); got != left*time.Second {
				t.Errorf("read %d has %s", i, got)
			}
		}
		_, err := r.Read(make([]byte, 8))
		check.Equal(t, "it ends", true, errors.Is(err, io.EOF))
		check.Equal(t, "the deadline is lifted", true, to.IsZero())
	})
}
