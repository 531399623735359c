// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
)

// Exit codes, which the help explains.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitForbidden   = 4
	exitConflict    = 5
	exitTimedOut    = 6
	exitNeedsPerson = 7
	exitInterrupted = 8
	// exitStopped is the usual exit code after ctrl-C.
	exitStopped = 130
)

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
func (usageError) exitCode() int   { return exitUsage }

// conflictError means that an object has changed since it was read.
type conflictError struct{ message string }

func (e conflictError) Error() string { return e.message }
func (conflictError) exitCode() int   { return exitConflict }

// timeoutError means that the outcome did not come within --timeout.
type timeoutError struct {
	waited time.Duration
	what   string
	known  string
	// person is true when a person or a client keeps the chat waiting.
	person bool
}

func (e timeoutError) Error() string {
	text := fmt.Sprintf("timed out after %s waiting for %s", e.waited, e.what)
	if e.known != "" {
		text += ": " + e.known
	}
	return text
}

func (e timeoutError) exitCode() int {
	if e.person {
		return exitNeedsPerson
	}
	return exitTimedOut
}

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	var own interface{ exitCode() int }
	var notFound cli.NotFoundError
	var notReady cli.NotReadyError
	var refused *client.Error
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &own):
		return own.exitCode()
	case errors.As(err, &notFound):
		return exitNotFound
	case errors.As(err, &notReady) && notReady.Reason == string(v1beta1.ReasonInterrupted):
		return exitInterrupted
	case errors.As(err, &refused):
		return cmp.Or(exitCodes[refused.Status], exitFailed)
	case errors.As(err, &status):
		return cmp.Or(exitCodes[int(status.Status().Code)], exitFailed)
	case errors.Is(err, context.Canceled):
		return exitStopped
	case isTimeout(err):
		return exitTimedOut
	}
	return exitFailed
}

// isTimeout reports whether no answer came in time, or no connection could be made.
func isTimeout(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && (failed.Op == "dial" || failed.Op == "proxyconnect")
}

// exitCodes maps statuses of the API server and the gateway.
var exitCodes = map[int]int{http.StatusNotFound: exitNotFound, http.StatusUnauthorized: exitForbidden,
	http.StatusForbidden: exitForbidden, http.StatusConflict: exitConflict, http.StatusGatewayTimeout: exitTimedOut}
