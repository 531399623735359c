// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

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
	if err := json.Unmarshal(raw, &value, json.RejectUnknownMembers(true)); err != nil {
		return nil, refuse(protocol.BadRequest, "The body is not what the agent knows: %s", decodingFault(err))
	}
	return &value, nil
}

// decodingFault says what is wrong with a body, without its content.
func decodingFault(err error) string {
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		if errors.Is(err, json.ErrUnknownName) {
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
	var deadline time.Time
	if d != unbounded {
		deadline = time.Now().Add(d)
	}
	if err := http.NewResponseController(w).SetReadDeadline(deadline); err != nil {
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
