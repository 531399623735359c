// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/test/kit/check"
)

// connection is one whose client takes a while for each KiB, and that keeps the deadline of reads.
type connection struct {
	*httptest.ResponseRecorder
	io.Reader
	each     time.Duration
	deadline time.Time
}

// SetReadDeadline is for http.ResponseController.
func (c *connection) SetReadDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

func (c *connection) Read(p []byte) (int, error) {
	<-time.After(c.each)
	if time.Now().After(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Reader.Read(p[:min(len(p), 1<<10)])
}

// A slow link is no reason to refuse a large body: what has to arrive is each piece of it.
func TestLargeBodyMayArriveSlowly(t *testing.T) {
	for name, c := range map[string]struct {
		each   time.Duration
		status int
	}{
		"slow":     {15 * time.Millisecond, 0}, // 45 seconds in all
		"too slow": {25 * time.Millisecond, http.StatusRequestTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 3 << 20
				w := &connection{httptest.NewRecorder(), bytes.NewReader(make([]byte, size)), c.each, time.Time{}}
				held := limit.NewPerCaller(bodies, callerBodies).Lease("anna")
				defer held.Release()
				request := &call{w: w, r: httptest.NewRequest(http.MethodPost, "/", w)}
				body, err := request.body(held)
				if c.status != 0 {
					refused, ok := errors.AsType[*refusal.Error](err)
					check.Equal(t, "it is refused", true, ok && refused.Status == c.status)
					return
				}
				check.OK(t, err)
				check.Equal(t, "bytes", size, len(body))
				check.Equal(t, "the deadline is lifted", true, w.deadline.IsZero())
			})
		})
	}
}

func TestBodyOfRetrievalDoesNotLimitTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &connection{httptest.NewRecorder(), bytes.NewReader([]byte(`{"stream": true}`)), time.Second, time.Time{}}
		request := &call{w: w, r: httptest.NewRequest(http.MethodGet, "/", w), control: http.NewResponseController(w),
			out: slowclient.New(w, writeTimeout)}
		check.Equal(t, "it asks for a stream", true, request.streamInBody())
		check.Equal(t, "the deadline is lifted", true, w.deadline.IsZero())
	})
}
