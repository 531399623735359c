// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/internal/cli/cluster"
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

// settle waits until done says of an object that it has reached its end, and returns it as it is then.
func settle[T any](ctx context.Context, w waiting, what string, watch cluster.Watcher, name string,
	done func(now *T, note func(string)) (bool, error)) (last *T, err error) {
	err = w.until(ctx, what, func(ctx context.Context, note func(string)) error {
		return cluster.Await(ctx, watch, name, func(now *T) (bool, error) {
			last = now
			return done(now, note)
		})
	})
	return last, err
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
