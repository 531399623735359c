// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/netguard/slowclient"
)

const (
	// DefaultHeartbeat is how often a silent stream carries an empty line, so that a dead connection is noticed.
	DefaultHeartbeat = 15 * time.Second
	// DefaultWriteTimeout is how long a subscriber may take to accept what it is sent.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultMaxStreams is how many subscribers a relay has at once: ten for each chat of a full pod. Each takes some
	// 30 KiB.
	DefaultMaxStreams = 1000
)

// Authorizer decides whether a bearer token may read episodes. It returns satoken.ErrUnauthenticated or
// satoken.ErrForbidden, wrapped, if not, and satoken.ErrNoKeys if it cannot tell yet.
type Authorizer interface {
	Authorize(ctx context.Context, token string) error
}

// errFull means that the relay has MaxStreams subscribers.
var errFull = errors.New("the relay has as many readers as it takes, try again")

// Subscribers serves the gateways, which subscribe to episodes.
type Subscribers struct {
	// Store to read from.
	Store *Store
	// Authorizer of every stream.
	Authorizer Authorizer
	// Heartbeat, default DefaultHeartbeat.
	Heartbeat time.Duration
	// WriteTimeout, default DefaultWriteTimeout.
	WriteTimeout time.Duration
	// MaxStreams at once, default DefaultMaxStreams. One more is answered with 503.
	MaxStreams int64

	streams atomic.Int64
	refused atomic.Int64
}

// Streams is the number of subscribers.
func (s *Subscribers) Streams() int64 { return s.streams.Load() }

// Refused is the number of requests that were refused since the start: for their tokens, or because of MaxStreams.
func (s *Subscribers) Refused() int64 { return s.refused.Load() }

// Handler serves
//
//	GET /v1/episodes/{uid}/{version}/{attempt}?after=SEQ  frames, one a line, then {"closed":true} and the end
//	GET /readyz                                           200
//
// The stream waits for an episode that does not exist yet for as long as the client does. A body that ends without
// {"closed":true} was cut.
func (s *Subscribers) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /v1/episodes/{uid}/{version}/{attempt}", s.stream)
	return mux
}

func (s *Subscribers) stream(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // The body is not read.
		writeError(w, badRequest{errors.New("the request must have no body")})
		return
	}
	if err := s.enter(r); err != nil {
		s.refused.Add(1)
		refuse(w, err)
		return
	}
	defer s.streams.Add(-1)
	ep, err := episodeOf(r)
	if err != nil {
		writeError(w, err)
		return
	}
	after, err := parseAfter(r.URL.Query().Get("after"))
	if err != nil {
		writeError(w, badRequest{err})
		return
	}
	sub := s.Store.Subscribe(ep, after)
	defer sub.Close()
	w.Header().Set("Content-Type", FrameMediaType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	s.copy(r.Context(), w, sub)
}

// copy sends frames until the episode is over, or the client is gone or too slow. Only the first sends a last line.
func (s *Subscribers) copy(ctx context.Context, w http.ResponseWriter, sub *Subscription) {
	out := slowclient.New(w, cmp.Or(s.WriteTimeout, DefaultWriteTimeout))
	out.IgnoreReads()
	send := func(b []byte) error {
		_, _ = out.Write(b) // Flush returns the error.
		return out.Flush()
	}
	if send(nil) != nil { // The header tells the client that it is authorized, before the first frame.
		return
	}
	heartbeat := cmp.Or(s.Heartbeat, DefaultHeartbeat)
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		batch, err := sub.Next(ctx, beat.C)
		switch {
		case errors.Is(err, io.EOF):
			_ = send(fmt.Appendf(nil, "{\"closed\":true,\"dropped\":%d}\n", sub.Dropped()))
			return
		case err != nil:
			return
		case batch == nil:
			batch = []byte("\n")
		}
		if send(batch) != nil {
			return
		}
		beat.Reset(heartbeat)
	}
}

// enter authorizes and counts a subscriber. It leaves by decrementing streams.
func (s *Subscribers) enter(r *http.Request) error {
	if err := s.authorize(r); err != nil {
		return err
	}
	if s.streams.Add(1) > cmp.Or(s.MaxStreams, DefaultMaxStreams) {
		s.streams.Add(-1)
		return errFull
	}
	return nil
}

func (s *Subscribers) authorize(r *http.Request) error {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return fmt.Errorf("%w: no bearer token", satoken.ErrUnauthenticated)
	}
	return s.Authorizer.Authorize(r.Context(), token)
}

// refuse answers with a refusal. It has no details that an unknown caller must not know.
func refuse(w http.ResponseWriter, err error) {
	status, message := http.StatusServiceUnavailable, err.Error()
	switch {
	case errors.Is(err, errFull), errors.Is(err, satoken.ErrNoKeys):
		w.Header().Set("Retry-After", "1")
	case errors.Is(err, satoken.ErrUnauthenticated):
		w.Header().Set("WWW-Authenticate", "Bearer")
		status = http.StatusUnauthorized
	case errors.Is(err, satoken.ErrForbidden):
		status = http.StatusForbidden
	default:
		message = "the relay cannot tell who may read, try again"
	}
	writeJSON(w, status, map[string]string{"error": message})
}

func parseAfter(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(s, 10, 64)
	if err != nil || after < 0 {
		return 0, fmt.Errorf("after must be a number from 0, not %q", s)
	}
	return after, nil
}
