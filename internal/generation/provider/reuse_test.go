// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestConnectionIsUsedAgainAfterALateEnd(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chatUsage(50, 20, 150))
		_ = http.NewResponseController(w).Flush()
		<-time.After(10 * time.Millisecond) // The end of the answer is a packet of its own.
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	model := modelAt(t, providertest.Compatible, "", server.URL)
	for range 5 {
		stream, err := model.Stream(t.Context(), question)
		check.OK(t, err)
		for part := range stream {
			if part.Type == fantasy.StreamPartTypeError {
				t.Fatal(part.Error)
			}
		}
	}
	check.Equal(t, "5 calls have opened", 1, opened.Load())
}

func TestAnswerIsWholeThoughItNeverEnds(t *testing.T) {
	for _, encoding := range []string{"", "gzip"} {
		gone := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if encoding == "" {
				_, _ = io.WriteString(w, chatUsage(50, 20, 150))
			} else {
				w.Header().Set("Content-Encoding", encoding)
				compressed := gzip.NewWriter(w)
				_, _ = io.WriteString(compressed, chatUsage(50, 20, 150))
				_ = compressed.Flush()
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(gone)
		}))
		check.Equal(t, "the usage", produced(20), usageAt(t, providertest.Compatible, "", server.URL))
		select {
		case <-gone:
		case <-time.After(30 * time.Second):
			t.Error("the connection is kept")
		}
		server.Close()
	}
}
