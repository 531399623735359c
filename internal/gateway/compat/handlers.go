// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/compat/messages"
	"parley.dev/parley/internal/gateway/compat/responses"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// protocol is an API whose requests create messages, and whose answers are streamed or whole.
type protocol struct {
	read   func(body []byte) (*wire.Request, error)
	stream func(a *wire.Answer, send wire.Send) audience
	whole  func(a *wire.Answer) any
	// hasStops is whether an answer can be one that was stopped. In other protocols, one without content is an error.
	hasStops bool
}

var (
	chatCompletions = protocol{completions.Read,
		func(a *wire.Answer, send wire.Send) audience { return completions.NewStream(a, send) },
		func(a *wire.Answer) any { return completions.Of(a) }, false}
	anthropicMessages = protocol{messages.Read,
		func(a *wire.Answer, send wire.Send) audience { return messages.NewStream(a, send) },
		func(a *wire.Answer) any { return messages.Of(a) }, false}
	openaiResponses = protocol{responses.Read,
		func(a *wire.Answer, send wire.Send) audience {
			return responses.NewStream(a, responses.FromStart, send)
		},
		func(a *wire.Answer) any { return responses.Of(a) }, true}
)

// create handles a request that creates a message.
func (s *server) create(p protocol) func(*call) error {
	return func(c *call) error {
		r, e, err := s.begin(c, p.read)
		if err != nil {
			return err
		}
		a := c.answer(e)
		a.WithUsage = r.Usage
		switch {
		case r.Stream:
			return s.stream(c, e, p.stream(a, c.send))
		case r.Background:
			a.Background = true
			return c.json(p.whole(a))
		}
		if err := s.collect(c, e, a); err != nil {
			return err
		}
		isStop := a.End.Outcome == turn.Interrupted && p.hasStops
		if a.End.Error != nil && !isStop {
			c.w.Header().Set("X-Should-Retry", "false") // The chat has made all retries.
			return wire.Failure(a.End.Error)
		}
		return c.json(p.whole(a))
	}
}

// find finds the exchange of the response that a request names.
func (s *server) find(c *call) (e exchange, err error) {
	message, ok := responses.MessageOf(c.r.PathValue("response"))
	if !ok {
		return e, &wire.Error{Status: http.StatusNotFound, Type: wire.NotFound, Code: new("response_not_found"),
			Message: "this is no id of a response of Parley"}
	}
	if e, err = s.backend.find(c.ctx(), c.namespace, message); err == nil {
		c.name(e)
	}
	return e, err
}

func (s *server) retrieve(c *call) error {
	e, err := s.find(c)
	if err != nil {
		return err
	}
	query := c.r.URL.Query()
	if query.Get("stream") == "true" || c.streamInBody() {
		after := responses.FromStart
		if number := query.Get("starting_after"); number != "" {
			if after, err = strconv.ParseInt(number, 10, 64); err != nil || after < responses.FromStart {
				return wire.Invalid("starting_after", "starting_after is not the number of an event")
			}
		}
		return s.stream(c, e, responses.NewStream(c.answer(e), after, c.send))
	}
	a := c.answer(e)
	begun, err := s.backend.look(c.ctx(), c.by, e, a.Take)
	if err != nil {
		return err
	}
	a.Begun = begun
	return c.json(responses.Of(a))
}

// streamInBody reports whether the body of a request asks for a stream, as OpenAI's client for Go sends it.
func (c *call) streamInBody() bool {
	const longest = 1 << 10
	var options struct {
		Stream bool `json:"stream"`
	}
	_ = c.control.SetReadDeadline(time.Now().Add(bodyTimeout)) // or the server's own holds
	err := json.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, longest)).Decode(&options)
	c.out.IgnoreReads() // The answer may take longer than the body.
	return err == nil && options.Stream
}

func (s *server) cancel(c *call) error {
	e, err := s.find(c)
	if err != nil {
		return err
	}
	withdrawn, err := s.backend.cancel(c.ctx(), e)
	if err != nil {
		return err
	}
	a := c.answer(e)
	if withdrawn {
		a.End = &turn.End{Outcome: turn.Interrupted}
	} else if err := s.collect(c, e, a); err != nil {
		return err
	}
	return c.json(responses.Of(a))
}

func (s *server) remove(c *call) error {
	e, err := s.find(c)
	if err != nil {
		return err
	}
	if err := s.backend.remove(c.ctx(), e); err != nil {
		return err
	}
	return c.json(map[string]any{"id": c.r.PathValue("response"), "object": "response", "deleted": true})
}

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

// audience is a stream of a protocol.
type audience interface {
	Begin() error
	Send(turn.Event) error
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
		_, _ = c.out.Write([]byte(piece)) // Flush returns the error.
	}
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// stream streams an answer to its end. An error is part of the stream, once that has begun.
func (s *server) stream(c *call, e exchange, to audience) error {
	alive := func() error { return c.write(": keep-alive\n\n") }
	send := func(e turn.Event) error {
		if e.Kind == turn.WaitChange {
			if e.Wait != nil && e.Wait.For == v1beta1.WaitForClientResult {
				return nil // The answer ends with the calls.
			}
			return c.wait(e.Wait, to)
		}
		return to.Send(e)
	}
	err := s.listen(c, e, &listener{begin: to.Begin, send: send, alive: alive, live: true})
	if err != nil && c.answering && !errors.Is(err, errGone) {
		_ = to.Fail(errorOf(c.ctx(), err)) // or the client is gone
	}
	return err
}

// waiter is an audience whose protocol has an event for what a chat waits for.
type waiter interface {
	Wait(*v1beta1.ChatWait) error
}

// wait sends what the chat waits for in a comment, which clients skip. Waits for people are also sent in an event, if
// the protocol has one.
func (c *call) wait(w *v1beta1.ChatWait, to audience) error {
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
func (s *server) collect(c *call, e exchange, a *wire.Answer) error {
	return s.listen(c, e, &listener{send: a.Take})
}

// listen sends an answer to a listener, within the memory for answers.
func (s *server) listen(c *call, e exchange, l *listener) error {
	c.out.IgnoreReads() // The answer may take longer than a request.
	held := s.answers.Lease(c.by.name)
	defer held.Release()
	send := l.send
	l.send = func(e turn.Event) error {
		if e.Kind == turn.BlockDelta {
			if refused := c.grow(held, len(e.Text)); refused != nil {
				return refused
			}
		}
		return send(e)
	}
	return s.backend.listen(c.ctx(), c.by, e, l)
}
