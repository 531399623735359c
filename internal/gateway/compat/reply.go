// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/conduct"
	"parley.dev/parley/internal/gateway/turn"
)

// json answers with an object.
func (c *call) json(object any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.answering = true
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.out.Write(raw) // or the client is gone
	return nil
}

// patient lets the answer take longer than a request may.
func (c *call) patient() { c.out.IgnoreReads() }

// audience is an answer that is told as it comes.
type audience interface {
	Begin() error
	Tell(turn.Event) error
	Fail(*wire.Error) error
}

// errGone means that the client takes no more.
var errGone = errors.New("the client takes no more of the answer")

// send writes a server-sent event. An event without a name has none.
func (c *call) send(event string, data []byte) error {
	if event != "" {
		event = "event: " + event + "\n"
	}
	return c.write(event+"data: ", string(data), "\n\n")
}

// write writes the pieces of an event, within writeTimeout.
func (c *call) write(pieces ...string) error {
	if !c.answering {
		c.answering = true
		h := c.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
		c.w.WriteHeader(http.StatusOK)
	}
	for _, piece := range pieces {
		_, _ = c.out.Write([]byte(piece)) // Flush says so.
	}
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// tell streams an answer to its end. What ends it before is told within it, once it has begun.
func (s *server) tell(c *call, begun conduct.Begun, to audience) error {
	alive := func() error { return c.write(": keep-alive\n\n") }
	send := func(e turn.Event) error {
		if e.Kind == turn.Waiting {
			if e.Wait != nil && e.Wait.For == v1alpha1.WaitForClientResult {
				return nil // The answer ends with the calls.
			}
			return c.wait(e.Wait, to)
		}
		return to.Tell(e)
	}
	err := s.listen(c, begun, conduct.Audience{Begin: to.Begin, Send: send, Alive: alive})
	if err != nil && c.answering && !errors.Is(err, errGone) {
		_ = to.Fail(errorOf(c.ctx(), err)) // or the client is gone
	}
	return err
}

// waiter is an audience whose protocol has room for what a chat waits for.
type waiter interface {
	Wait(*v1alpha1.ChatWait) error
}

// wait tells what the chat waits for: in a comment, which clients skip, and of waits for people also in an event that
// clients know, where the protocol has one.
func (c *call) wait(w *v1alpha1.ChatWait, to audience) error {
	raw, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encoding what the chat waits for: %w", err)
	}
	if err := c.write(": parley.wait ", string(raw), "\n\n"); err != nil {
		return err
	}
	inBand, ok := to.(waiter)
	person := w != nil && w.For.NeedsPerson()
	if !ok || !person && !c.waited {
		return nil
	}
	if c.waited = person; !person {
		w = nil
	}
	return inBand.Wait(w)
}

// collect waits for the whole answer.
func (s *server) collect(c *call, begun conduct.Begun, a *wire.Answer) error {
	return s.listen(c, begun, conduct.Audience{Send: a.Tell})
}

// listen tells an answer for which there is room.
func (s *server) listen(c *call, begun conduct.Begun, to conduct.Audience) error {
	c.patient()
	held := s.answers.Lease(c.by.Name)
	defer held.Release()
	send := to.Send
	to.Send = func(e turn.Event) error {
		if e.Kind == turn.Grown {
			if refused := c.grow(held, len(e.Text)); refused != nil {
				return refused
			}
		}
		return send(e)
	}
	return s.options.Conductor.Listen(c.ctx(), c.by, begun, to)
}
