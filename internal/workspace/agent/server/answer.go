// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// writeTimeout is how long a client may take to accept a piece of an answer.
	writeTimeout = 30 * time.Second
	// loggedBytes is how much of an error is logged.
	loggedBytes = 300
)

// statuses of HTTP for refusals; default: 422.
var statuses = map[protocol.ErrorCode]int{
	protocol.BadRequest:       http.StatusBadRequest,
	protocol.Unauthenticated:  http.StatusUnauthorized,
	protocol.Forbidden:        http.StatusForbidden,
	protocol.Unbound:          http.StatusConflict,
	protocol.BoundToAnother:   http.StatusConflict,
	protocol.NotFound:         http.StatusNotFound,
	protocol.OutsideWorkspace: http.StatusForbidden,
	protocol.TooLarge:         http.StatusRequestEntityTooLarge,
	protocol.TooMany:          http.StatusTooManyRequests,
	protocol.NotRunning:       http.StatusConflict,
	protocol.NoSpace:          http.StatusInsufficientStorage,
	protocol.PermissionDenied: http.StatusForbidden,
	protocol.OutcomeUnknown:   http.StatusConflict,
	protocol.Unavailable:      http.StatusServiceUnavailable,
	protocol.Internal:         http.StatusInternalServerError,
}

func refuse(code protocol.ErrorCode, format string, args ...any) error {
	return &protocol.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// refusalOf turns an error into one of the protocol.
func refusalOf(err error) *protocol.Error {
	if refused, ok := errors.AsType[*protocol.Error](err); ok {
		return refused
	}
	switch {
	case errors.Is(err, satoken.ErrUnauthenticated):
		return &protocol.Error{Code: protocol.Unauthenticated, Message: err.Error()}
	case errors.Is(err, satoken.ErrForbidden):
		return &protocol.Error{Code: protocol.Forbidden, Message: err.Error()}
	case errors.Is(err, satoken.ErrNoKeys):
		return &protocol.Error{Code: protocol.Unavailable, Message: err.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &protocol.Error{Code: protocol.Unavailable, Message: "The request was canceled."}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &protocol.Error{Code: protocol.NoSpace, Message: "The workspace's storage is full."}
	}
	return &protocol.Error{Code: protocol.Internal, Message: "The agent of the workspace failed: " + err.Error()}
}

// refuseRequest answers with an error, and logs failures of the agent.
func (s *Server) refuseRequest(w http.ResponseWriter, r *http.Request, err error) {
	refused := refusalOf(err)
	status := cmp.Or(statuses[refused.Code], http.StatusUnprocessableEntity)
	switch status {
	case http.StatusInternalServerError:
		s.options.Log.WarnContext(r.Context(), "A request failed", "method", r.Method, "code", refused.Code,
			"error", printable.Line(clip.Bytes(refused.Message, loggedBytes)))
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	_ = answer(w, status, refused) // Its fields are strings, which always encode.
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = slowclient.New(w, writeTimeout).Write(body) // A client that is gone needs no answer.
	return nil
}
