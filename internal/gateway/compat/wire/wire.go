// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire has what the protocols have in common: errors, settings, tools and files. It is pure.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
)

// Request is a request of a client.
type Request struct {
	turn.Request

	// Stream is whether the answer is streamed, and Usage whether its last chunk has the usage.
	Stream, Usage bool
	// Background is whether the client does not wait for the answer.
	Background bool
	// Fields are the names of settings in the protocol.
	Fields map[turn.Setting]string
}

// Send sends an event of a stream: its name, which may be empty, and its data.
type Send func(event string, data []byte) error

// Answer is an answer to a message.
type Answer struct {
	// Namespace, Chat and Message that it answers.
	Namespace, Chat, Message string
	// Model as the client named it.
	Model string
	// Created is when the message was created.
	Created time.Time
	// Output is what the answer matches; nil for text. ToolChoice is of its first reply; nil: the model decides.
	Output     *v1beta1.OutputFormat
	ToolChoice *v1beta1.ToolChoice
	// Metadata that the answer repeats.
	Metadata map[string]string
	// Begun is whether its turn has begun.
	Begun bool
	// Background is whether the client does not wait for it.
	Background bool
	// WithUsage is whether the last chunk of its stream has the usage.
	WithUsage bool
	// Blocks of the answer, and its End; nil while it runs.
	Blocks []turn.Block
	End    *turn.End
}

// Take takes an event of the turn.
func (a *Answer) Take(e turn.Event) error {
	a.Begun = a.Begun || e.Kind != turn.WaitChange
	switch e.Kind {
	case turn.BlockEnd:
		a.Blocks = append(a.Blocks, *e.Block)
	case turn.AnswerEnd:
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

// Unsupported is a refusal of a field that chats do not have.
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
func Effort(param, word string) (v1beta1.ReasoningEffort, error) {
	if word == "" {
		return "", nil
	}
	effort := v1beta1.ReasoningEffortOf(word)
	if effort == "" {
		return "", Invalid(param, "%s is none of none, minimal, low, medium, high, xhigh and max", param)
	}
	return effort, nil
}

// failure is an error of a turn for clients.
type failure struct {
	status     int
	kind, code string
}

// failures by the reason of the error. Other reasons are errors of the server, with the reason as code.
var failures = map[v1beta1.ErrorReason]failure{
	v1beta1.ErrorRateLimited:           {http.StatusTooManyRequests, RateLimit, "rate_limit_exceeded"},
	v1beta1.ErrorUsageLimitReached:     {http.StatusTooManyRequests, Quota, "insufficient_quota"},
	v1beta1.ErrorBudgetReached:         {http.StatusTooManyRequests, Quota, "insufficient_quota"},
	v1beta1.ErrorOverloaded:            {http.StatusServiceUnavailable, Server, "overloaded"},
	v1beta1.ErrorProviderUnavailable:   {http.StatusBadGateway, Server, "provider_unavailable"},
	v1beta1.ErrorProviderTimeout:       {http.StatusGatewayTimeout, Server, "provider_silent"},
	v1beta1.ErrorProviderError:         {http.StatusBadGateway, Server, "provider_error"},
	v1beta1.ErrorContextTooLong:        {http.StatusBadRequest, InvalidRequest, "context_length_exceeded"},
	v1beta1.ErrorContentFiltered:       {http.StatusBadRequest, InvalidRequest, "content_filter"},
	v1beta1.ErrorRequestRejected:       {http.StatusBadRequest, InvalidRequest, "request_rejected"},
	v1beta1.ErrorOutputInvalid:         {http.StatusBadGateway, Server, "output_invalid"},
	v1beta1.ErrorOutputSchemaInvalid:   {http.StatusBadRequest, InvalidRequest, "output_schema_invalid"},
	v1beta1.ErrorModelNotFound:         {http.StatusNotFound, NotFound, "model_not_found"},
	v1beta1.ErrorModelConfigNotFound:   {http.StatusNotFound, NotFound, "model_not_found"},
	v1beta1.ErrorModelConfigDisabled:   {http.StatusNotFound, NotFound, "model_not_found"},
	v1beta1.ErrorModelConfigNotAllowed: {http.StatusForbidden, Permission, "model_not_allowed"},
	"QueueFull":                        {http.StatusTooManyRequests, RateLimit, "queue_full"},
	"ResultsInvalid":                   {http.StatusBadRequest, InvalidRequest, "results_invalid"},
	"Superseded":                       {http.StatusConflict, InvalidRequest, "superseded"},
	turn.MessageDeleted:                {http.StatusNotFound, NotFound, "message_deleted"},
	turn.ChatDeleted:                   {http.StatusNotFound, NotFound, "chat_deleted"},
	turn.TurnInterrupted:               {http.StatusConflict, InvalidRequest, "interrupted"},
	"Archived":                         {http.StatusConflict, InvalidRequest, "archived"},
}

// Reasons are those of errors that have a code of their own.
func Reasons() []v1beta1.ErrorReason { return slices.Sorted(maps.Keys(failures)) }

// Failure is the error of a turn in OpenAI's form.
func Failure(e *stream.Error) *Error {
	if e == nil {
		e = &stream.Error{Reason: v1beta1.ErrorInternal, Message: "the turn failed"}
	}
	f, ok := failures[e.Reason]
	if !ok {
		f = failure{http.StatusInternalServerError, Server, Snake(string(e.Reason))}
	}
	return &Error{Status: f.status, Type: f.kind, Code: &f.code, Message: e.Text()}
}

// Snake writes a CamelCase word in lower case with underscores.
func Snake(word string) string {
	var b strings.Builder
	for i, r := range word {
		upper := r >= 'A' && r <= 'Z'
		if upper && i > 0 && (word[i-1] < 'A' || word[i-1] > 'Z') {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}
