// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	jsonv2 "encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/workspace/protocol"
)

// decode reads the body of a request: one JSON value of valid UTF-8. Unknown members are refused, so that the agent
// ignores nothing that a newer client asks for.
func decode[T any](w http.ResponseWriter, r *http.Request) (*T, error) {
	raw, err := body(w, r, protocol.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	return decodeJSON[T]([]byte(raw))
}

func decodeJSON[T any](raw []byte) (*T, error) {
	var value T
	if err := jsonv2.Unmarshal(raw, &value, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, refuse(protocol.BadRequest, "The body is not what the agent knows: %s", decodingFault(err))
	}
	return &value, nil
}

// decodingFault says what is wrong with a body, without its content.
func decodingFault(err error) string {
	if semantic, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		if errors.Is(err, jsonv2.ErrUnknownName) {
			return fmt.Sprintf("%.100q is unknown", string(semantic.JSONPointer))
		}
		return fmt.Sprintf("%.100q cannot be %s", string(semantic.JSONPointer), semantic.JSONKind)
	}
	return "it is no JSON of valid UTF-8"
}

// body reads all of a request's body, and then lifts the time bound of readWithin.
func body(w http.ResponseWriter, r *http.Request, most int64) (string, error) {
	if r.ContentLength > most {
		return "", refuse(protocol.TooLarge, "The body has %d bytes, more than %d.", r.ContentLength, most)
	}
	var content strings.Builder
	content.Grow(int(max(r.ContentLength, 0)))
	_, err := io.Copy(&content, http.MaxBytesReader(w, r.Body, most))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return "", refuse(protocol.TooLarge, "The body has more than %d bytes.", most)
	}
	if err != nil {
		return "", refuse(protocol.BadRequest, "The body did not arrive as a whole.")
	}
	r.Body = http.NoBody // All of it has been read.
	return content.String(), readWithin(w, unbounded)
}

// unbounded lifts the bound of readWithin.
const unbounded time.Duration = 0

// readWithin bounds the time in which a request's body arrives. The bound must be lifted before the answer takes long:
// when it is over, it ends the request's context.
func readWithin(w http.ResponseWriter, d time.Duration) error {
	connection := http.NewResponseController(w)
	err := connection.SetReadDeadline(time.Time{})
	if d != unbounded {
		err = connection.SetReadDeadline(time.Now().Add(d))
	}
	if err != nil {
		return fmt.Errorf("bounding the time to read: %w", err)
	}
	return nil
}

// waitContext is the context of a request that may wait. It ends at once if the request does not ask to wait.
func waitContext(w http.ResponseWriter, r *http.Request) (context.Context, context.CancelFunc, error) {
	seconds, err := number(r, "wait")
	if err == nil {
		err = readWithin(w, unbounded)
	}
	if err != nil {
		return nil, nil, err
	}
	wait := time.Duration(min(seconds, int64(protocol.MaxWait/time.Second))) * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	return ctx, cancel, nil
}

// number is a query parameter from 0 on; default: 0.
func number(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, refuse(protocol.BadRequest, "%s must be a number from 0 on, not %.40q.", name, text)
	}
	return n, nil
}

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
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = slowclient.New(w, writeTimeout).Write(body.Bytes()) // A client that is gone needs no answer.
	return nil
}
