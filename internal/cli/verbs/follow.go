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
)

// drain is how long the end of a turn may take to come through the stream once the message's own status has told it.
const drain = 5 * time.Second

// question begins a turn.
type question struct {
	chat string
	// ask says it, and returns the name of the message.
	ask func(ctx context.Context) (message string, err error)
	// first is true for the prompt of a chat that was just created.
	first bool
	// cutsIn is true for a message that waits for nobody.
	cutsIn bool
	// timeout is how long to wait for the reply.
	timeout time.Duration
}

// openSource finds the gateway, or does without and says so.
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

// printer prints what is said in a chat.
func (s *session) printer(chat string) *render.Printer {
	return render.NewPrinter(s.Out, s.ErrOut, s.Format == render.FormatJSON, render.Hint{Chat: chat, Command: s.command})
}

// ask asks a question and shows the reply.
func ask(ctx context.Context, s *session, q question) error {
	from, err := openSource(ctx, s)
	if err != nil {
		return err
	}
	defer from.Close()
	return followTurn(ctx, s, from, q)
}

// followTurn asks and shows the reply. It opens the stream first, so that nothing of the reply can be missed.
func followTurn(ctx context.Context, s *session, from cluster.Source, q question) error {
	t := &render.Turn{Printer: s.printer(q.chat), First: q.first, CutsIn: q.cutsIn, Over: make(chan struct{})}
	from.OnLoss(t.OutOfReach)
	ctx, stop := context.WithTimeout(ctx, q.timeout)
	defer stop()
	err := askAndFollow(ctx, s, from, q, t)
	if errors.Is(err, context.DeadlineExceeded) {
		known, requiresAction := t.Waits()
		err = timeoutError{waited: q.timeout, what: "the reply", known: known, person: requiresAction}
	}
	return terminal.DuringOutput(err)
}

func askAndFollow(ctx context.Context, s *session, from cluster.Source, q question, t *render.Turn) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	connected, streamed, verdict := make(chan struct{}), make(chan error, 1), make(chan cluster.Verdict, 1)
	connect := sync.OnceFunc(func() { close(connected) })
	running.Go(func() { streamed <- from.Follow(ctx, s.Namespace, q.chat, q.first, connect, t.Event) })
	select {
	case <-connected:
	case err := <-streamed:
		return err
	}
	message, err := q.ask(ctx)
	if err != nil {
		return err
	}
	if err := t.Begin(message); err != nil {
		return err
	}
	running.Go(func() { verdict <- s.Settled(ctx, message) })
	return await(t, streamed, verdict)
}

// await waits until the turn was shown to its end and the message has had its last word, or one of the two has failed.
func await(t *render.Turn, streamed <-chan error, verdict <-chan cluster.Verdict) error {
	defer t.Stop()
	select {
	case <-t.Over:
		return (<-verdict).Err
	case err := <-streamed:
		if err != nil {
			return err
		}
		return (<-verdict).Err
	case v := <-verdict:
		if !v.Committed { // a message that was rejected has no turn
			return v.Err
		}
		select { // what the stream still has of the turn is on its way
		case <-t.Over:
		case failed := <-streamed:
			return cmp.Or(v.Err, failed)
		case <-time.After(drain):
		}
		return v.Err
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
