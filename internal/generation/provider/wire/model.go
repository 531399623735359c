// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire is what all wire protocols between Parley and a model share: one HTTP request for each call, one reader
// of its reply, and the parts that a protocol makes of it.
//
// A protocol is a package next to this one. It imports this package, and no other protocol.
package wire

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/finish"
)

// Protocol is a wire protocol. It is safe for concurrent use.
type Protocol interface {
	// Request is the request that makes a call. The warnings are about what it leaves out.
	Request(ctx context.Context, call *fantasy.Call) (*Request, []fantasy.CallWarning, error)
	// Reply returns the reader of the reply to one call. It passes what it reads to parts.
	Reply(parts *Parts) Reply
}

// Reply reads one reply.
type Reply interface {
	// Event reads the data of one event, which is JSON or [DONE]. It reports whether the reply has ended, so that what
	// follows is not read. An error is the end of the reply; one that the provider reports in an event is made by
	// EventError.
	Event(data []byte) (ended bool, err error)
	// Events are the data of the events of a reply that came as one JSON document, because the server does not stream.
	Events(document []byte) [][]byte
	// End ends the open parts once the stream has ended in order. The error is IncompleteError if the reply has no
	// end.
	End() (End, error)
}

// End is the end of a reply as the provider reports it.
type End struct {
	finish.Last
	Usage fantasy.Usage
}

// Model is a fantasy.LanguageModel that speaks a protocol. It only streams.
type Model struct {
	protocol Protocol
	client   *http.Client
	spec     *v1beta1.ChatModelConfigSpec
}

// NewModel returns the model of a configuration.
func NewModel(protocol Protocol, client *http.Client, spec *v1beta1.ChatModelConfigSpec) *Model {
	return &Model{protocol: protocol, client: client, spec: spec}
}

// Stream implements fantasy.LanguageModel. It returns when the headers of the answer have come. A call that fails is a
// stream with an error; the returned error is one of a call that was not made. The stream has to be read, or ctx
// canceled.
func (m *Model) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	request, warnings, err := m.protocol.Request(ctx, &call)
	if err != nil {
		return nil, err
	}
	response, err := m.post(ctx, request, call.Headers) //nolint:bodyclose // read closes it.
	return func(yield func(fantasy.StreamPart) bool) {
		parts := &Parts{yield: yield, protocol: finish.ProtocolOf(m.spec)}
		parts.Warn(warnings...)
		failure := err
		if failure == nil {
			failure = m.read(response, parts)
		}
		if failure != nil {
			parts.add(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: failure})
		}
	}, nil
}

// read reads the answer to its end. If the connection fails after the end of the reply, the reply is complete: another
// one would be paid for, too.
func (m *Model) read(response *http.Response, parts *Parts) error {
	defer closeRead(response.Body)
	reply := m.protocol.Reply(parts)
	var failure error
	for data, err := range eventsOf(response, m.spec.Provider == v1beta1.ProviderBedrock, reply.Events) {
		if _, reported := errors.AsType[*fantasy.ProviderError](err); reported {
			return err
		}
		if failure = err; err != nil {
			break
		}
		ended, err := reply.Event(data)
		if err != nil || parts.stopped {
			return err
		}
		if ended {
			break
		}
	}
	end, err := reply.End()
	if err != nil {
		return cmp.Or(failure, err)
	}
	parts.EndAll()
	end.RequestID = requestID(response)
	parts.add(finish.Mark(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, Usage: end.Usage}, end.Last))
	return nil
}

// IncompleteError is a reply whose stream ended before it did.
func IncompleteError() error { return fantasy.NewIncompleteStreamError() }

// errStreamsOnly is the answer to a call that is not streamed.
var errStreamsOnly = errors.New("calling the model: only streamed calls are supported; call Stream")

// Generate implements fantasy.LanguageModel; it always fails.
func (m *Model) Generate(context.Context, fantasy.Call) (*fantasy.Response, error) {
	return nil, errStreamsOnly
}

// GenerateObject implements fantasy.LanguageModel; it always fails.
func (m *Model) GenerateObject(context.Context, fantasy.ObjectCall) (*fantasy.ObjectResponse, error) {
	return nil, errStreamsOnly
}

// StreamObject implements fantasy.LanguageModel; it always fails.
func (m *Model) StreamObject(context.Context, fantasy.ObjectCall) (fantasy.ObjectStreamResponse, error) {
	return nil, errStreamsOnly
}

// Provider implements fantasy.LanguageModel.
func (m *Model) Provider() string { return string(m.spec.Provider) }

// Model implements fantasy.LanguageModel.
func (m *Model) Model() string { return m.spec.Model }
