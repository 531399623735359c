// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal has the answers of the gateway that are no stream.
package refusal

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley.dev/parley/internal/netguard/limit"
)

// Reasons, each one CamelCase word. They are also values of the metric parley_gateway_refusals_total.
const (
	// BadRequest means that an id or a parameter cannot be read, from=now comes with last, or the request has a body that
	// it must not have (400).
	BadRequest = "BadRequest"
	// Unauthorized means that the token is missing, expired, of another audience, or unknown to the cluster (401).
	Unauthorized = "Unauthorized"
	// Forbidden means that the caller may not do this (403).
	Forbidden = "Forbidden"
	// NotFound means that there is no such chat, also after two seconds, so that a new chat can be followed at once; or
	// that the gateway has no such path, or does not serve the namespace (404). A client that resumes gets the event
	// deleted instead.
	NotFound = "NotFound"
	// MethodNotAllowed means that the path has no such method; the header Allow lists its methods (405).
	MethodNotAllowed = "MethodNotAllowed"
	// Conflict means that the state of the object does not allow the operation, such as promoting a message that does not
	// wait, or reading the changes of a workspace that is stopped (409).
	Conflict = "Conflict"
	// UnsupportedMediaType means that the Content-Type of the body is not application/json (415).
	UnsupportedMediaType = "UnsupportedMediaType"
	// TooManyStreams means that the caller has 128 streams open, --max-streams-per-caller (429).
	TooManyStreams = "TooManyStreams"
	// TooManyRequests means that the caller has 8 running operations or downloads, a quarter of --max-requests, 2 uploads
	// or redactions of archives, or 2 requests for changes (429).
	TooManyRequests = "TooManyRequests"
	// GatewayFull means that the gateway has 1024 open streams (--max-streams), 32 running operations or downloads
	// (--max-requests), 8 uploads or redactions of archives, or 4 requests for changes (503).
	GatewayFull = "GatewayFull"
	// Overloaded means that too many callers are being reviewed: at most 16 at a time (--max-reviews), the others wait up
	// to 5 seconds (503).
	Overloaded = "Overloaded"
	// APIServerUnavailable means that the API server cannot authenticate or authorize the caller (503).
	APIServerUnavailable = "APIServerUnavailable"
	// IdentityProviderUnavailable means that the OpenID provider, with which people sign in to the page, cannot be reached
	// or refuses the gateway (503).
	IdentityProviderUnavailable = "IdentityProviderUnavailable"
	// ArchiveUnavailable means that the object storage with archived chats and files refuses the request (502).
	ArchiveUnavailable = "ArchiveUnavailable"
	// WorkspaceUnavailable means that the workspace of the chat does not answer a request for changes (503).
	WorkspaceUnavailable = "WorkspaceUnavailable"
	// StoredFilesExceeded means that an uploaded file would exceed what the namespace may store (403).
	StoredFilesExceeded = "StoredFilesExceeded"
	// TooLarge means that the body of an operation is larger than 3 MiB, or an uploaded file larger than 3.5 MiB (413).
	TooLarge = "RequestEntityTooLarge"
	// Starting means that the gateway is still reading the cluster's chats (503).
	Starting = "Starting"
)

// Error is why a request is refused, in terms of HTTP.
type Error struct {
	// Status of the answer.
	Status int
	// Reason is one of the constants above.
	Reason string
	// Message is what is wrong and what to do. It has nothing that an unknown caller must not know.
	Message string
	// RetryAfter is when to retry; 0 if that does not help.
	RetryAfter time.Duration
	// Cause is for the log; nil if there is none.
	Cause error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// Denied reports whether the caller was not authenticated or authorized.
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

// Fallback serves mux, and refuses other paths (404) and methods (405, with the header Allow). mux has no pattern for
// all paths.
func Fallback(mux *http.ServeMux, refuse func(w http.ResponseWriter, r *http.Request, no *Error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r) // It also sets the values of the path.
			return
		}
		answer := statusOnly{header: http.Header{}}
		handler.ServeHTTP(&answer, r)
		if answer.status == http.StatusMethodNotAllowed {
			Only(answer.header.Get("Allow"), refuse)(w, r)
			return
		}
		refuse(w, r, &Error{Status: http.StatusNotFound, Reason: NotFound,
			Message: fmt.Sprintf("the gateway has nothing at %.200q: see docs/reference/gateway.md and docs/reference/stream.md",
				r.URL.Path)})
	})
}

// Only refuses every method except those of allow, in the form of the header Allow.
func Only(allow string, refuse func(w http.ResponseWriter, r *http.Request, no *Error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		refuse(w, r, &Error{Status: http.StatusMethodNotAllowed, Reason: MethodNotAllowed,
			Message: fmt.Sprintf("%.20s is not served here, but %s", r.Method, allow)})
	}
}

// statusOnly is an answer without its body.
type statusOnly struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (d *statusOnly) Header() http.Header { return d.header }

// Write implements http.ResponseWriter.
func (*statusOnly) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (d *statusOnly) WriteHeader(status int) { d.status = status }

// Limited is the refusal for an error of package limit; nil for none. Reason is that of a caller that has reached its
// own limit, after is when it may retry, and what names what is limited.
func Limited(err error, caller, what, reason string, after time.Duration) *Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, limit.ErrCaller):
		return &Error{Status: http.StatusTooManyRequests, Reason: reason, RetryAfter: after,
			Message: fmt.Sprintf("%s has as many %s as one caller may have: end one, or try again", caller, what)}
	}
	return &Error{Status: http.StatusServiceUnavailable, Reason: GatewayFull, RetryAfter: min(after, 5*time.Second),
		Message: fmt.Sprintf("the gateway has as many %s as it may have, try again", what)}
}
