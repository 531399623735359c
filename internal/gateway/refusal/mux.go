// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"fmt"
	"net/http"
)

// Fallback serves what mux does, and has refuse answer what it does not: paths that it does not know (404), and methods
// that a path has not (405, with the header Allow). mux has no pattern that takes all.
func Fallback(mux *http.ServeMux, refuse func(w http.ResponseWriter, r *http.Request, no *Error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r) // It sets the values of the path, too.
			return
		}
		answer := discarded{header: http.Header{}}
		handler.ServeHTTP(&answer, r)
		if answer.status == http.StatusMethodNotAllowed {
			Only(answer.header.Get("Allow"), refuse)(w, r)
			return
		}
		refuse(w, r, &Error{Status: http.StatusNotFound, Reason: NotFound,
			Message: fmt.Sprintf("the gateway has nothing at %.200q: docs/gateway.md and docs/stream.md list what there is",
				r.URL.Path)})
	})
}

// Only refuses every method but those that are named, as the header Allow has them.
func Only(allow string, refuse func(w http.ResponseWriter, r *http.Request, no *Error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		refuse(w, r, &Error{Status: http.StatusMethodNotAllowed, Reason: MethodNotAllowed,
			Message: fmt.Sprintf("%.20s is not served here, but %s", r.Method, allow)})
	}
}

// discarded keeps of an answer what it says by its status and headers.
type discarded struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (d *discarded) Header() http.Header { return d.header }

// Write implements http.ResponseWriter.
func (*discarded) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (d *discarded) WriteHeader(status int) { d.status = status }
