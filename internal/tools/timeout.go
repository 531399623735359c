// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Silence is how long a call may give no sign of life before it is told to end: a minute. One that waits for a command
// gives one each 15 s, and a request to a workspace that is not to wait is given up after 30 s.
const Silence = time.Minute

// errSilent ends the context of a call that gave no sign of life.
var errSilent = errors.New("the call gave no sign of life")

// errGivenUp is what the model reads of such a call.
var errGivenUp = fmt.Errorf("the call timed out after %s without progress; whether it was done is "+
	"not known", Silence)

// guard returns the context of a call, which ends when nothing was heard of the call for too long, unless the tool owns
// its timeout.
func guard(ctx context.Context, owned bool) (guarded context.Context, alive, end func()) {
	guarded, cancel := context.WithCancelCause(ctx)
	if owned {
		return guarded, func() {}, func() { cancel(nil) }
	}
	timer := time.AfterFunc(Silence, func() { cancel(errSilent) })
	return guarded, func() { timer.Reset(Silence) }, func() {
		timer.Stop()
		cancel(nil)
	}
}

// failure is the error of a call that ended with err, as the model reads it.
func failure(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(context.Cause(ctx), errSilent):
		return errGivenUp
	}
	return errCutOff
}
