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
		err = timeoutError{waited: q.timeout, what: "the reply", known: t.WaitsFor(), person: t.RequiresAction()}
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
		if !v.Committed || t.IsShown() { // a message that was rejected has no turn
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
