// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal has the answers of the gateway that are no stream.
package refusal

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Reasons, each one CamelCase word. They are also values of the metric parley_gateway_refusals_total.
const (
	// BadRequest means that the request cannot be understood (400).
	BadRequest = "BadRequest"
	// Unauthorized means that the token is missing or not good (401).
	Unauthorized = "Unauthorized"
	// Forbidden means that the caller may not listen (403).
	Forbidden = "Forbidden"
	// NotFound means that the chat, or what the path names, does not exist (404).
	NotFound = "NotFound"
	// MethodNotAllowed means that the path is not served for the method (405).
	MethodNotAllowed = "MethodNotAllowed"
	// Conflict means that what is asked for cannot be done to the object as it stands (409).
	Conflict = "Conflict"
	// UnsupportedMediaType means that the body does not say that it is JSON (415).
	UnsupportedMediaType = "UnsupportedMediaType"
	// TooManyStreams means that the caller has as many streams as one may have (429).
	TooManyStreams = "TooManyStreams"
	// TooManyRequests means that the caller has as many requests under way as one may have (429).
	TooManyRequests = "TooManyRequests"
	// GatewayFull means that the gateway has as many streams, or requests under way, as it may have (503).
	GatewayFull = "GatewayFull"
	// Overloaded means that too many callers are being reviewed (503).
	Overloaded = "Overloaded"
	// APIServerUnavailable means that the API server does not say who may listen (503).
	APIServerUnavailable = "APIServerUnavailable"
	// TooLarge means that the request is larger than what the API server takes (413).
	TooLarge = "RequestEntityTooLarge"
	// Starting means that the gateway does not know the cluster's chats yet (503).
	Starting = "Starting"
)

// Error says why a request is refused, in the terms of HTTP.
type Error struct {
	// Status of the answer.
	Status int
	// Reason is one of the constants above.
	Reason string
	// Message says what is missing and how to come by it. It holds nothing that a caller who may be anybody must not know.
	Message string
	// RetryAfter is when to try again; 0 if that does not help.
	RetryAfter time.Duration
	// Cause is for the log; nil if there is none.
	Cause error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// Denied reports whether the answer is no, and not only late.
func (e *Error) Denied() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// BearerToken is the token of a header Authorization; empty if that holds none.
func BearerToken(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Body is the body of the answer, a JSON object.
type Body struct {
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Body is the body of the answer.
func (e *Error) Body() Body { return Body{Status: e.Status, Reason: e.Reason, Message: e.Message} }

// SetHeaders sets the headers of the answer that depend on the refusal.
func (e *Error) SetHeaders(h http.Header) {
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
}

// Write writes the answer.
func (e *Error) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	e.SetHeaders(h)
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(e.Body()) // or the client is gone
}
