// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/compat/messages"
	"parley.dev/parley/internal/gateway/compat/responses"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/conduct"
	"parley.dev/parley/internal/gateway/turn"
)

func (s *server) complete(c *call) error {
	r, begun, err := s.begin(c, completions.Read)
	if err != nil {
		return err
	}
	a := c.answer(begun)
	if r.Stream {
		return s.tell(c, begun, completions.NewStream(a, r.Usage, c.send))
	}
	if err := s.collect(c, begun, a); err != nil {
		return err
	}
	completion, err := completions.Of(a)
	if err != nil {
		return c.failed(err)
	}
	return c.json(completion)
}

// failed says of a turn that failed that the same request will not go better: the chat has tried what can be tried.
func (c *call) failed(err error) error {
	c.w.Header().Set("X-Should-Retry", "false")
	return err
}

func (s *server) message(c *call) error {
	r, begun, err := s.begin(c, messages.Read)
	if err != nil {
		return err
	}
	a := c.answer(begun)
	if r.Stream {
		return s.tell(c, begun, messages.NewStream(a, c.send))
	}
	if err := s.collect(c, begun, a); err != nil {
		return err
	}
	message, err := messages.Of(a)
	if err != nil {
		return c.failed(err)
	}
	return c.json(message)
}

func (s *server) respond(c *call) error {
	r, begun, err := s.begin(c, responses.Read)
	if err != nil {
		return err
	}
	a := c.answer(begun)
	switch {
	case r.Stream:
		return s.tell(c, begun, responses.NewStream(a, responses.FromStart, c.send))
	case r.Background:
		response := responses.Of(a)
		response.Background = true
		return c.json(response)
	}
	if err := s.collect(c, begun, a); err != nil {
		return err
	}
	if a.End.Outcome == turn.Failed {
		return c.failed(wire.Failure(a.End.Error))
	}
	return c.json(responses.Of(a))
}

// find finds the response that a request is about.
func (s *server) find(c *call) (begun conduct.Begun, err error) {
	message, ok := responses.MessageOf(c.r.PathValue("response"))
	if !ok {
		return begun, &wire.Error{Status: http.StatusNotFound, Type: wire.NotFound, Code: new("response_not_found"),
			Message: "this is no id of a response of Parley"}
	}
	if begun, err = s.options.Conductor.Find(c.ctx(), c.namespace, message); err == nil {
		c.w.Header().Set("X-Parley-Chat", begun.Chat.Name)
		c.w.Header().Set("X-Parley-Message", begun.Message.Name)
	}
	return begun, err
}

func (s *server) retrieve(c *call) error {
	begun, err := s.find(c)
	if err != nil {
		return err
	}
	query := c.r.URL.Query()
	if query.Get("stream") == "true" || c.streamInBody() {
		after := responses.FromStart
		if given := query.Get("starting_after"); given != "" {
			if after, err = strconv.ParseInt(given, 10, 64); err != nil || after < responses.FromStart {
				return wire.Invalid("starting_after", "starting_after is not the number of an event")
			}
		}
		return s.tell(c, begun, responses.NewStream(c.answer(begun), after, c.send))
	}
	return s.show(c, begun)
}

// streamInBody reports whether a request says in a body that it wants a stream, as OpenAI's client for Go does.
func (c *call) streamInBody() bool {
	const longest = 1 << 10
	var said struct {
		Stream bool `json:"stream"`
	}
	_ = c.control.SetReadDeadline(time.Now().Add(bodyTimeout)) // or the server's own holds
	err := json.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, longest)).Decode(&said)
	return err == nil && said.Stream
}

// show answers with a response as far as it has come.
func (s *server) show(c *call, begun conduct.Begun) error {
	a := c.answer(begun)
	begins, _, err := s.options.Conductor.Look(c.ctx(), c.by, begun, a.Tell)
	if err != nil {
		return err
	}
	a.Begun = begins
	return c.json(responses.Of(a))
}

func (s *server) cancel(c *call) error {
	begun, err := s.find(c)
	if err != nil {
		return err
	}
	waits := begun.Message.Status.State == v1alpha1.MessageQueued
	if err := s.options.Conductor.Cancel(c.ctx(), begun); err != nil {
		return err
	}
	a := c.answer(begun)
	if waits {
		a.End = &turn.End{Outcome: turn.Interrupted}
		return c.json(responses.Of(a))
	}
	if err := s.collect(c, begun, a); err != nil {
		return err
	}
	return c.json(responses.Of(a))
}

func (s *server) remove(c *call) error {
	begun, err := s.find(c)
	if err != nil {
		return err
	}
	if err := s.options.Conductor.Delete(c.ctx(), begun); err != nil {
		return err
	}
	return c.json(map[string]any{"id": c.r.PathValue("response"), "object": "response", "deleted": true})
}
