// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// waiting is whether and how long a verb waits for what becomes of its request.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", true, "wait until the request was acted on, and fail if it was refused")
	cmd.Flags().DurationVar(&w.timeout, "timeout", time.Minute, "how long to wait")
}

// newAwaited makes a command of a verb on one chat that waits for what becomes of it.
func newAwaited(o *options, cmd *cobra.Command,
	run func(ctx context.Context, s *session, chat string, w waiting) error) *cobra.Command {
	var w waiting
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = o.connected(func(ctx context.Context, s *session, args []string) error {
		return run(ctx, s, args[0], w)
	}, forms...)
	w.addFlags(cmd)
	return cmd
}

// until waits within the timeout. What it says when time is over names what was last known.
func (w *waiting) until(ctx context.Context, what string,
	wait func(ctx context.Context, note func(string)) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	known := "nothing was heard of it; is Parley's manager running?"
	err := wait(ctx, func(s string) { known = s })
	if errors.Is(err, context.DeadlineExceeded) {
		return timeoutError{waited: w.timeout, what: what, known: known}
	}
	return err
}
