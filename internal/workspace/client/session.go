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
	"sync"
	"sync/atomic"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// takeTimeout is how long the agent may take to accept what a session says: as long as a command may take to read
	// it, and a little more.
	takeTimeout = time.Minute + 10*time.Second
	// sessionLook is after how much silence of a session its pod is asked for.
	sessionLook = 10 * time.Second
	// endWait is how long a command may take to end whose session the other side has ended, lastWait how long it may take
	// to find out how, and lastBytes how much of the end of its output is read.
	endWait, lastWait, lastBytes = 3 * time.Second, 6 * time.Second, 2 << 10
)

// errStuck is why a session ends whose command reads nothing.
var errStuck = errors.New("the command reads nothing")

// Session speaks to a command of the workspace by its standard input and output. Closing it ends the command and all
// that it has started. One goroutine may read while others write.
type Session struct {
	// ID of the command.
	ID string

	client *Client
	conn   io.ReadWriteCloser
	// heard is whether anything was read since the pod was last thought of.
	heard atomic.Bool
	// closed is whether this side has ended it, ended whether the other side did before.
	closed, ended atomic.Bool
	stop          context.CancelFunc

	mu sync.Mutex
	// fault is why the session was ended by this side.
	fault error
}

// Speak starts a command that is spoken to, each time another one. The context bounds how long that takes.
func (c *Client) Speak(ctx context.Context, r protocol.StartRequest) (*Session, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a request to the workspace: %w", err)
	}
	return retry(ctx, c.agent, request{}, func(ctx context.Context) (*Session, error) { return c.trySpeak(ctx, raw) })
}

// trySpeak asks once, by a key of its own: what a try has started whose answer got lost has ended with its connection.
func (c *Client) trySpeak(ctx context.Context, raw []byte) (*Session, error) {
	prepared, err := c.agent.prepare(ctx, request{method: http.MethodPost, path: "/v1/sessions/" + rand.Text(), body: raw})
	if err != nil {
		return nil, err
	}
	prepared.Header.Set("Connection", "Upgrade")
	prepared.Header.Set("Upgrade", protocol.Session)
	response, err := c.agent.http.Do(prepared)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	conn, upgraded := response.Body.(io.ReadWriteCloser)
	id := response.Header.Get(protocol.HeaderProcess)
	if response.StatusCode == http.StatusSwitchingProtocols && upgraded &&
		strings.EqualFold(response.Header.Get("Upgrade"), protocol.Session) && protocol.ValidKey(id) {
		living, stop := context.WithCancel(context.WithoutCancel(ctx))
		s := &Session{ID: id, client: c, conn: conn, stop: stop}
		if c.agent.options.Gone != nil {
			go s.lookAfter(living)
		}
		return s, nil
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, &AnswerError{Status: response.StatusCode, Problem: "not that of a session"}
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusalBytes)) // Half a refusal is one, too.
	return nil, refusal(response, body)
}

// lookAfter ends the session once its pod is known to be gone, which no connection tells whose node has died.
func (s *Session) lookAfter(ctx context.Context) {
	for rest(ctx, sessionLook) {
		if !s.heard.Swap(false) && s.client.agent.pod.isGone(ctx) {
			s.end(ErrGone)
		}
	}
}

// Read implements io.Reader. The error is io.EOF when the command has ended, or the agent.
func (s *Session) Read(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	s.heard.Store(true)
	if err != nil && !s.closed.Load() {
		s.ended.Store(true)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return n, s.because(err)
}

// Write implements io.Writer.
func (s *Session) Write(p []byte) (int, error) {
	defer time.AfterFunc(takeTimeout, func() { s.end(errStuck) }).Stop()
	n, err := s.conn.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return n, s.because(err)
}

// because is why the session was ended by this side, if it was, and else the error.
func (s *Session) because(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.fault != nil {
		return s.fault
	}
	return err
}

// end ends the session for a reason.
func (s *Session) end(fault error) {
	s.mu.Lock()
	if s.fault == nil {
		s.fault = fault
	}
	s.mu.Unlock()
	_ = s.Close() // What is under way tells the reason.
}

// Close ends the session, and with it the command.
func (s *Session) Close() error {
	s.closed.Store(true)
	s.stop()
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("ending a session: %w", err)
	}
	return nil
}

// Last is what the command has come to, and the end of what it has written to its standard error. Where the other side
// has ended the session, it waits a little for the end of the command.
func (s *Session) Last(ctx context.Context) (*protocol.Process, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	wait := time.Duration(0)
	if s.ended.Load() {
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
