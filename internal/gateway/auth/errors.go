// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley.dev/parley/internal/gateway/refusal"
)

func unauthenticated(message string) *refusal.Error {
	return &refusal.Error{Status: http.StatusUnauthorized, Reason: refusal.Unauthorized, Message: message}
}

func forbidden(username string, access Access) *refusal.Error {
	return &refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden, Message: fmt.Sprintf(
		"%s may not %s in namespace %s: ask for the ClusterRole parley-chat-viewer", username, access.wanted(),
		access.Namespace)}
}

// unanswered is for callers who may be anybody: what went wrong between gateway and API server is in the log alone.
func unanswered(what string, err error) *refusal.Error {
	if errors.Is(err, errBusy) {
		return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.Overloaded, RetryAfter: time.Second,
			Message: "too many callers ask at the same time, try again"}
	}
	return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.APIServerUnavailable,
		RetryAfter: 2 * time.Second,
		Message:    "the API server does not say who may listen, try again", Cause: fmt.Errorf("%s: %w", what, err)}
}
