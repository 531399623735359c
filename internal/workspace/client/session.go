// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// writeTimeout is how long the agent may take to accept a write: the time that a command has to read it, and more.
	writeTimeout = time.Minute + 10*time.Second
	// silence is how long a session may be silent before its pod is checked.
	silence = 10 * time.Second
	// endWait is how long a command may take to end after the other side closed the session, lastWait bounds the requests
	// about its end, and lastBytes is how much of the end of its output is read.
	endWait, lastWait, lastBytes = 3 * time.Second, 6 * time.Second, 2 << 10
)

// errStuck ends a session whose command does not read.
var errStuck = errors.New("the command reads nothing")

// Session is the standard input and output of a command of the workspace. Close ends the command and all its
// descendants. One goroutine may read while others write.
type Session struct {
	// ID of the command.
	ID string

	client *Client
	conn   io.ReadWriteCloser
	// wasActive reports whether anything was read since the last check of the pod.
	wasActive atomic.Bool
	// endedThere reports whether the other side closed the session first.
	endedThere atomic.Bool
	// cause is why this side closed the session; nil: it is open.
	cause func() error
	stop  context.CancelCauseFunc
}

// Speak starts a new command with a session. The context bounds how long that takes.
func (c *Client) Speak(ctx context.Context, r protocol.StartRequest) (*Session, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a request to the workspace: %w", err)
	}
	return repeat(ctx, c, request{}, func(ctx context.Context) (*Session, error) { return c.trySpeak(ctx, raw) })
}

// trySpeak tries once, under a new key: the command of a try without an answer has ended with its connection.
func (c *Client) trySpeak(ctx context.Context, raw []byte) (*Session, error) {
	prepared, err := c.prepare(ctx, request{method: http.MethodPost, path: "/v1/sessions/" + rand.Text(), body: raw})
	if err != nil {
		return nil, err
	}
	prepared.Header.Set("Connection", "Upgrade")
	prepared.Header.Set("Upgrade", protocol.Session)
	response, err := c.http.Do(prepared)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	conn, upgraded := response.Body.(io.ReadWriteCloser)
	id := response.Header.Get(protocol.HeaderProcess)
	if response.StatusCode == http.StatusSwitchingProtocols && upgraded &&
		strings.EqualFold(response.Header.Get("Upgrade"), protocol.Session) && protocol.ValidKey(id) {
		open, stop := context.WithCancelCause(context.WithoutCancel(ctx))
		s := &Session{ID: id, client: c, conn: conn, stop: stop, cause: func() error { return context.Cause(open) }}
		go s.watch(open)
		return s, nil
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, &AnswerError{Status: response.StatusCode, Problem: "not that of a session"}
	}
	return nil, refusal(response)
}

// watch ends the session if its pod is gone: the connection of a pod whose node died stays open.
func (s *Session) watch(ctx context.Context) {
	for sleep(ctx, silence) == nil {
		if !s.wasActive.Swap(false) && s.client.pod.check(ctx) {
			_ = s.end(ErrGone)
		}
	}
}

// Read implements io.Reader. The error is io.EOF when the command has ended, or the agent.
func (s *Session) Read(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	s.wasActive.Store(true)
	if err != nil && s.cause() == nil {
		s.endedThere.Store(true)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return n, s.explain(err)
}

// Write implements io.Writer.
func (s *Session) Write(p []byte) (int, error) {
	defer time.AfterFunc(writeTimeout, func() { _ = s.end(errStuck) }).Stop()
	n, err := s.conn.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return n, s.explain(err)
}

// explain replaces an error by the failure for which this side ended the session.
func (s *Session) explain(err error) error {
	if cause := s.cause(); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// Close ends the session, and with it the command.
func (s *Session) Close() error { return s.end(nil) }

// end closes the session because of a failure; nil: there is none.
func (s *Session) end(failure error) error {
	s.stop(failure)
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("ending a session: %w", err)
	}
	return nil
}

// Last returns the command, and the end of its standard error. If the other side closed the session, it waits a little
// for the end of the command.
func (s *Session) Last(ctx context.Context) (*protocol.Process, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	wait := time.Duration(0)
	if s.endedThere.Load() {
		wait = endWait
	}
	p, err := s.client.look(ctx, s.ID, wait)
	if err != nil {
		return nil, nil, err
	}
	out, err := s.client.Output(ctx, s.ID, max(0, p.OutputBytes-lastBytes), lastBytes, 0)
	if err != nil {
		return p, nil, err
	}
	return p, out.Data, nil
}
