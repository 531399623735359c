// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire has what OpenAI's two protocols have in common: errors, tools and files. It is pure.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/turn"
)

// Request is a request that was read.
type Request struct {
	turn.Request

	// Stream is whether the answer is streamed, and Usage, whether its last chunk says what it took.
	Stream, Usage bool
	// Background is whether the answer is not waited for.
	Background bool
	// Fields are the names that settings have in the protocol.
	Fields map[turn.Setting]string
}

// Answer is what is known of an answer besides what it says.
type Answer struct {
	// Namespace, Chat and Message that it is of.
	Namespace, Chat, Message string
	// Model as the client called it.
	Model string
	// Created is when the message was created.
	Created time.Time
	// Output is what the answer matches; nil for text. ToolChoice is of its first reply; nil: the model decides.
	Output     *v1alpha1.OutputFormat
	ToolChoice *v1alpha1.ToolChoice
	// Metadata that the answer repeats.
	Metadata map[string]string
	// Begun is whether the model is at it.
	Begun bool
	// Blocks of the answer, and its End; nil as long as it has none.
	Blocks []turn.Block
	End    *turn.End
}

// Tell takes an event of the turn.
func (a *Answer) Tell(e turn.Event) error {
	if e.Kind == turn.Waiting {
		return nil
	}
	a.Begun = true
	switch e.Kind {
	case turn.Closed:
		a.Blocks = append(a.Blocks, *e.Block)
	case turn.Ended:
		a.End = e.End
	}
	return nil
}

// Error is a refusal in OpenAI's form.
type Error struct {
	// Status of the HTTP answer.
	Status int `json:"-"`
	// RetryAfter is when to try again; 0 if that does not help.
	RetryAfter time.Duration `json:"-"`
	Message    string        `json:"message"`
	Type       string        `json:"type"`
	// Param is the field of the request that is wrong.
	Param *string `json:"param"`
	Code  *string `json:"code"`
}

func (e *Error) Error() string { return e.Message }

// Types of errors.
const (
	InvalidRequest = "invalid_request_error"
	Authentication = "authentication_error"
	Permission     = "permission_error"
	NotFound       = "not_found_error"
	RateLimit      = "rate_limit_error"
	Quota          = "insufficient_quota"
	Server         = "server_error"
)

// Invalid is a refusal of a field.
func Invalid(param, format string, args ...any) error {
	return &Error{Status: http.StatusBadRequest, Type: InvalidRequest, Param: &param, Code: new("invalid_value"),
		Message: fmt.Sprintf(format, args...)}
}

// Unsupported is a refusal of a field that chats have no meaning for.
func Unsupported(param, format string, args ...any) error {
	return &Error{Status: http.StatusBadRequest, Type: InvalidRequest, Param: &param, Code: new("unsupported_parameter"),
		Message: fmt.Sprintf(format, args...)}
}

// Read reads a body.
func Read(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	if no, ok := errors.AsType[*Error](err); ok {
		return no
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return Invalid(wrong.Field, "%s is no %s", wrong.Field, wrong.Type)
	}
	return &Error{Status: http.StatusBadRequest, Type: InvalidRequest, Message: "the body is no JSON of the request: " +
		err.Error()}
}

// Effort is the effort that a word means.
func Effort(param, word string) (v1alpha1.ReasoningEffort, error) {
	if word == "" {
		return "", nil
	}
	effort := v1alpha1.ReasoningEffortOf(word)
	if effort == "" {
		return "", Invalid(param, "%s is none of none, minimal, low, medium, high, xhigh and max", param)
	}
	return effort, nil
}
