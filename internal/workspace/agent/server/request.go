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

// decode reads the body of a request: one JSON value of a type, of valid UTF-8, without members that the type does not
// have. What a newer client says and this agent would not heed is refused.
func decode[T any](w http.ResponseWriter, r *http.Request) (*T, error) {
	raw, err := body(w, r, protocol.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	return decodeJSON[T]([]byte(raw))
}

// decoded is a handler that is given the body.
func decoded[T any](handle func(http.ResponseWriter, *http.Request, *T) error) func(http.ResponseWriter,
	*http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		asked, err := decode[T](w, r)
		if err != nil {
			return err
		}
		return handle(w, r, asked)
	}
}

func decodeJSON[T any](raw []byte) (*T, error) {
	var value T
	if err := json.Unmarshal(raw, &value, json.RejectUnknownMembers(true)); err != nil {
		return nil, refuse(protocol.BadRequest, "The body is not what the agent knows: %s", decodingFault(err))
	}
	return &value, nil
}

// decodingFault says what is wrong with a body, and nothing of what it holds.
func decodingFault(err error) string {
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		if errors.Is(err, json.ErrUnknownName) {
			return fmt.Sprintf("%.100q is unknown", string(semantic.JSONPointer))
		}
		return fmt.Sprintf("%.100q cannot be %s", string(semantic.JSONPointer), semantic.JSONKind)
	}
	return "it is no JSON of valid UTF-8"
}

// body reads all of a request's body. From then on the client is not waited for any more.
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
	return content.String(), untimed(w)
}

// timed bounds how long a request's body takes from now on.
func timed(w http.ResponseWriter, most time.Duration) error {
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(most)); err != nil {
		return fmt.Errorf("bounding the time to read: %w", err)
	}
	return nil
}

// untimed lifts the bound on the time to read: when that came, it would end the request's context.
func untimed(w http.ResponseWriter) error {
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("lifting the bound on the time to read: %w", err)
	}
	return nil
}

// waitOf is the context of a request that waits, for as long as it asks to; done if it does not.
func waitOf(r *http.Request) (context.Context, context.CancelFunc, error) {
	seconds, err := number(r, "wait")
	if err != nil {
		return nil, nil, err
	}
	wait := min(time.Duration(min(seconds, int64(protocol.MaxWait/time.Second)))*time.Second, protocol.MaxWait)
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	return ctx, cancel, nil
}

// number is a query parameter that counts something, 0 if there is none.
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
