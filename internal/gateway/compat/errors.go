// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/compat/messages"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/turn"
)

// errorOf is any error in OpenAI's form.
func errorOf(ctx context.Context, err error) *wire.Error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*refusal.Error](err); ok {
		return ofStatus(e.Status, e.Reason, e.Message, e.RetryAfter)
	}
	if closing, ok := errors.AsType[*stream.Closing](err); ok {
		return closed(closing)
	}
	if closing, ok := errors.AsType[*stream.Closing](context.Cause(ctx)); ok {
		return closed(closing)
	}
	if errors.Is(err, turn.ErrDiverged) {
		return &wire.Error{Status: http.StatusConflict, Type: wire.Server, Code: new("answer_changed"),
			Message: err.Error() + ": retrieve it, or make the same request again"}
	}
	if errors.Is(err, turn.ErrTooLong) {
		return &wire.Error{Status: http.StatusInternalServerError, Type: wire.Server, Code: new("answer_too_long"),
			Message: turn.ErrTooLong.Error()}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code < http.StatusBadRequest {
		return ofStatus(http.StatusServiceUnavailable, refusal.APIServerUnavailable,
			"the API server does not answer, try again", time.Second)
	}
	answer := status.Status()
	after, _ := apierrors.SuggestsClientDelay(err)
	if answer.Code == http.StatusUnauthorized {
		answer.Message = "the API server does not take this token: it may have expired"
	}
	return ofStatus(int(answer.Code), string(answer.Reason), answer.Message, time.Duration(after)*time.Second)
}

// closed is why the gateway ends an answer; the chat continues.
func closed(c *stream.Closing) *wire.Error {
	status := http.StatusServiceUnavailable
	switch c.Reason {
	case stream.ClosingExpired:
		status = http.StatusUnauthorized
	case stream.ClosingWithdrawn:
		status = http.StatusForbidden
	}
	return ofStatus(status, c.Reason, c.Message, time.Second)
}

// types of errors by the status.
var types = map[int]string{
	http.StatusUnauthorized: wire.Authentication, http.StatusForbidden: wire.Permission,
	http.StatusNotFound: wire.NotFound, http.StatusTooManyRequests: wire.RateLimit,
}

// codes of errors that have names in OpenAI's protocols.
var codes = map[string]string{refusal.Unauthorized: "invalid_api_key", modelNotFound: "model_not_found"}

func ofStatus(status int, reason, message string, after time.Duration) *wire.Error {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest // OpenAI has one status for invalid requests.
	}
	e := &wire.Error{Status: status, Type: types[status], Message: message, RetryAfter: after}
	if e.Type == "" {
		e.Type = wire.InvalidRequest
		if status >= http.StatusInternalServerError {
			e.Type = wire.Server
		}
	}
	code := codes[reason]
	if code == "" {
		code = wire.Snake(reason)
	}
	e.Code = &code
	return e
}

// anthropic reports whether the client uses Anthropic's protocol, whose requests name its version.
func (c *call) anthropic() bool {
	return c.r.Header.Get("Anthropic-Version") != "" || strings.HasSuffix(c.r.URL.Path, "/messages")
}

// refuse answers with an error.
func (c *call) refuse(e *wire.Error) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	if c.r.ContentLength != 0 && !c.read { // The body is not read, and the answer would wait for it.
		h.Set("Connection", "close")
	}
	(&refusal.Error{Status: e.Status, RetryAfter: e.RetryAfter}).SetHeaders(h)
	c.w.WriteHeader(e.Status)
	var body any = map[string]any{"error": e}
	if c.anthropic() {
		body = messages.Refusal(e)
	}
	_ = json.NewEncoder(c.out).Encode(body) // or the client is gone
}
