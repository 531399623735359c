// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley.dev/parley/internal/netguard/limit"
)

// Limited is the refusal of what exceeds a limit, by an error of package limit; nil for none. The reason is that of a
// caller who has as much as one may have, who may try again after a time; what names what is limited.
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
