// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what is believed of a gateway that asks to come back later.
const maxRetryAfter = time.Minute

// Error is a refusal of the gateway. docs/stream.md lists its own reasons; those of the API server are as with kubectl,
// such as AlreadyExists and Conflict.
type Error struct {
	// Status of the answer in HTTP.
	Status int
	// Reason is one CamelCase word; empty if the answer does not come from a gateway.
	Reason string
	// Message says what is wrong and what to do about it.
	Message string
	// RetryAfter is when the same request may succeed, at most a minute; 0 if the gateway does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	return fmt.Sprintf("the gateway refused (%d): %s", e.Status, e.Message)
}

// SpeaksTLS is the message of a refusal by something that is asked in plain HTTP and speaks TLS.
const SpeaksTLS = "it speaks TLS: its URL begins with https://"

// plainToTLS is how a server of Go answers who speaks plain HTTP to it but should speak TLS.
const plainToTLS = "Client sent an HTTP request to an HTTPS server."

// refusal reads why the gateway refused.
func refusal(response *http.Response) *Error {
	var body struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // What is missing says nothing.
	_ = json.Unmarshal(text, &body)                                  // Others than gateways answer otherwise.
	e := &Error{Status: response.StatusCode, Reason: body.Reason,
		Message: cmp.Or(body.Message, http.StatusText(response.StatusCode))}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = min(time.Duration(seconds), maxRetryAfter/time.Second) * time.Second
	}
	switch {
	case response.StatusCode/100 == 3:
		e.Message = "it sends callers elsewhere, where your token is not shown: name the gateway's own URL"
	case response.StatusCode == http.StatusBadRequest && strings.TrimSpace(string(text)) == plainToTLS:
		e.Message = SpeaksTLS
	}
	return e
}

// passes reports whether a refusal is over after a while: a fault of the gateway, or, once a stream has begun, that the
// caller has too many.
func (e *Error) passes(begun bool) bool {
	return e.Status >= http.StatusInternalServerError || begun && e.Status == http.StatusTooManyRequests
}

// final reports whether a request failed for a reason that another try would not change: what serves there is not who
// it should be, or nothing can be asked there.
func final(err error) bool {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	return unverified || errors.Is(err, http.ErrSchemeMismatch)
}
