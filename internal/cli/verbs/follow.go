// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/netguard/retry"
)

// drain is how long the end of a turn may take to come through the stream once the message's status has it.
const drain = 5 * time.Second

// errSettled ends a stream whose turn is over by the status of its message.
var errSettled = errors.New("the message is settled")

// question is a message whose reply is shown.
type question struct {
	chat string
	// ask creates the message and returns its name.
	ask func(ctx context.Context) (message string, err error)
	// first is true for the prompt of a new chat, and interrupts for a message that does not wait for the turn under way.
	first, interrupts bool
	// timeout is how long to wait for the reply.
	timeout time.Duration
}

// openSource connects to the gateway, or uses the API server and says so.
func openSource(ctx context.Context, s *session) (cluster.Source, error) {
	g, err := s.dialer.Dial(ctx)
	if errors.Is(err, cluster.ErrNoToken) {
		fmt.Fprintf(s.ErrOut,
			"%v, so replies are shown when they are whole. To watch them come, use a kubeconfig with a token, "+
				"or name a service account that may get chats/stream with --service-account.\n", err)
		return cluster.APIServer{Client: s.Client}, nil
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// printer prints the events of a chat.
func (s *session) printer(chat string) *render.Printer {
	return render.NewPrinter(s.Out, s.ErrOut, s.Format == render.FormatJSON, render.Hint{Chat: chat, Command: s.command})
}

// ask creates a message and shows the reply.
func ask(ctx context.Context, s *session, q question) error {
	from, err := openSource(ctx, s)
	if err != nil {
		return err
	}
	defer from.Close()
	ctx, stop := context.WithTimeout(ctx, q.timeout)
	defer stop()
	t := &render.Turn{Printer: s.printer(q.chat), First: q.first, Interrupts: q.interrupts}
	defer t.Printer.EndLine()
	err = followTurn(ctx, s, from, q, t)
	if errors.Is(err, context.DeadlineExceeded) {
		known, requiresAction := t.Waits()
		err = timeoutError{waited: q.timeout, what: "the reply", known: known, person: requiresAction}
	}
	return terminal.DuringOutput(err)
}

// followTurn shows a turn until both the stream and the message's status have its end. It creates the message once the
// stream is open, so that no part of the reply is missed.
func followTurn(ctx context.Context, s *session, from cluster.Source, q question, t *render.Turn) error {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	verdict := make(chan cluster.Verdict, 1)
	settle := func() {
		v := s.AwaitVerdict(ctx, t.Message)
		verdict <- v
		if v.Committed { // The end of its turn is on its way.
			_ = retry.Sleep(ctx, drain)
		}
		stop(errSettled)
	}
	var failed error
	for e, err := range from.Follow(ctx, s.Namespace, q.chat, q.first, t.Printer.OutOfReach) {
		if err == nil && t.Message == "" {
			if t.Message, err = q.ask(ctx); err != nil {
				return err
			}
			running.Go(settle)
		}
		if err == nil {
			err = t.Event(e)
		}
		if failed = err; err != nil || t.Ended {
			break
		}
	}
	if failed == nil || errors.Is(failed, errSettled) {
		return (<-verdict).Err
	}
	select {
	case v := <-verdict:
		return cmp.Or(v.Err, failed)
	default:
		return failed
	}
}

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
