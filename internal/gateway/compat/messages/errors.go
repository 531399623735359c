// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"net/http"

	"parley.dev/parley/internal/gateway/compat/wire"
)

// Error is a refusal in Anthropic's form.
type Error struct {
	Type  string `json:"type"`
	Error detail `json:"error"`
}

type detail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Refusal is a refusal in Anthropic's form, as the body of an answer.
func Refusal(e *wire.Error) Error { return Error{Type: "error", Error: errorOf(e)} }

// types of errors for which Anthropic has words of its own, by the status.
var types = map[int]string{
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	http.StatusServiceUnavailable: "overloaded_error", http.StatusGatewayTimeout: "timeout_error",
}

func errorOf(e *wire.Error) detail {
	kind := types[e.Status]
	switch {
	case kind != "":
	case e.Status >= http.StatusInternalServerError:
		kind = "api_error"
	default:
		kind = e.Type
	}
	return detail{Type: kind, Message: e.Message}
}
