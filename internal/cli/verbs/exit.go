// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/cli/terminal"
)

// What a verb ends with. docs/kubectl-chat.md explains each.
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
	// exitStopped is what shells expect of a program that ctrl-C has ended.
	exitStopped = 130
)

// Run runs the plug-in, tells of the error that it ended with, and returns what the process is to end with.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	cmd := NewCommand(streams) //nolint:contextcheck // Commands get theirs from ExecuteContext.
	cmd.SetArgs(args)
	begun := false
	cmd.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	err := cmd.ExecuteContext(ctx)
	if err != nil && !begun { // It was cobra that refused.
		err = usageError{err}
	}
	if err != nil {
		terminal.Complain(streams.ErrOut, err)
	}
	return exitCode(err)
}

// usageError is about what was typed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func (usageError) exitCode() int { return exitUsage }

// conflictError means that an object is not what it was when it was read.
type conflictError struct{ message string }

func (e conflictError) Error() string { return e.message }

func (conflictError) exitCode() int { return exitConflict }

// timeoutError means that time is over.
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

// exitCode is what a verb ends with that ended with an error.
func exitCode(err error) int {
	var own interface{ exitCode() int }
	var missing cli.NotFoundError
	var verdict cli.NotReadyError
	var refused *client.Error
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &own):
		return own.exitCode()
	case errors.As(err, &missing):
		return exitNotFound
	case errors.As(err, &verdict) && verdict.Reason == string(v1alpha1.ReasonInterrupted):
		return exitInterrupted
	case errors.As(err, &refused):
		return codeOfStatus(refused.Status)
	case errors.As(err, &status):
		return codeOfStatus(int(status.Status().Code))
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimedOut
	case errors.Is(err, context.Canceled):
		return exitStopped
	}
	return exitFailed
}

// codeOfStatus is that of a refusal of the API server or the gateway.
func codeOfStatus(status int) int {
	switch status {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitForbidden
	case http.StatusConflict:
		return exitConflict
	case http.StatusGatewayTimeout:
		return exitTimedOut
	}
	return exitFailed
}
