// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/client"
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
func openSource(ctx context.Context, s *session) (Source, error) {
	g, err := s.dialer.Dial(ctx)
	if errors.Is(err, ErrNoToken) {
		fmt.Fprintf(s.ErrOut,
			"%v, so replies are shown when they are whole. To watch them come, use a kubeconfig with a token, "+
				"or name a service account that may get chats/stream with --service-account.\n", err)
		return APIServer{s.Client}, nil
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// printer prints what is said in a chat.
func (s *session) printer(chat string) *printer {
	return newPrinter(s.Out, s.ErrOut, s.Format == outJSON, hint{chat: chat, command: s.command})
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
func followTurn(ctx context.Context, s *session, from Source, q question) error {
	t := &turn{
		printer: s.printer(q.chat), first: q.first, cutsIn: q.cutsIn, over: make(chan struct{}),
	}
	from.OnLoss(t.outOfReach)
	ctx, stop := context.WithTimeout(ctx, q.timeout)
	defer stop()
	err := askAndFollow(ctx, s, from, q, t)
	if errors.Is(err, context.DeadlineExceeded) {
		err = timeoutError{waited: q.timeout, what: "the reply", known: t.waitsFor(), person: t.requiresAction()}
	}
	return amid(err)
}

func askAndFollow(ctx context.Context, s *session, from Source, q question, t *turn) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	connected, streamed, verdict := make(chan struct{}), make(chan error, 1), make(chan Verdict, 1)
	connect := sync.OnceFunc(func() { close(connected) })
	running.Go(func() { streamed <- from.Follow(ctx, s.Namespace, q.chat, q.first, connect, t.event) })
	select {
	case <-connected:
	case err := <-streamed:
		return err
	}
	message, err := q.ask(ctx)
	if err != nil {
		return err
	}
	if err := t.begin(message); err != nil {
		return err
	}
	running.Go(func() { verdict <- s.Settled(ctx, message) })
	return t.await(streamed, verdict)
}

// await waits until the turn was shown to its end and the message has had its last word, or one of the two has failed.
func (t *turn) await(streamed <-chan error, verdict <-chan Verdict) error {
	defer t.stop()
	select {
	case <-t.over:
		return (<-verdict).Err
	case err := <-streamed:
		if err != nil {
			return err
		}
		return (<-verdict).Err
	case v := <-verdict:
		if !v.Committed || t.shown() { // a message that was rejected has no turn
			return v.Err
		}
		select { // what the stream still has of the turn is on its way
		case <-t.over:
		case failed := <-streamed:
			return cmp.Or(v.Err, failed)
		case <-time.After(drain):
		}
		return v.Err
	}
}

// outOfReach tells why nothing is shown at the moment.
func (t *turn) outOfReach(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.printer.outOfReach(err)
}

// shown reports whether the turn's end was shown.
func (t *turn) shown() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// stop ends what is shown.
func (t *turn) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.printer.endLine()
}

// turn shows the turn of one message.
type turn struct {
	printer *printer
	// first is true for the turn that a chat begins with, and cutsIn for a message that waits for nobody.
	first, cutsIn bool
	// over is closed when the turn's end was shown.
	over chan struct{}

	mu      sync.Mutex
	message string
	early   []stream.Event // what came before the message's name was known
	chat    client.Transcript
	ended   bool
}

// requiresAction reports whether a person or a client keeps the chat waiting.
func (t *turn) requiresAction() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.chat.Status != nil && t.chat.Status.Phase == v1alpha1.ChatRequiresAction
}

// waitsFor is what the chat waits for, in words; empty: nothing that is known.
func (t *turn) waitsFor() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.chat.Status == nil || t.chat.Status.Wait == nil {
		return ""
	}
	return t.chat.Status.Wait.Reason + ": " + t.chat.Status.Wait.Message
}

// begin tells the name of the message.
func (t *turn) begin(message string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.message = message
	for _, e := range t.early {
		if err := t.take(e); err != nil {
			return err
		}
	}
	t.early = nil
	return nil
}

// event takes an event of the chat. It has had enough when the turn is over.
func (t *turn) event(e stream.Event) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.message == "" {
		t.early = append(t.early, e)
		return false, nil
	}
	err := t.take(e)
	return t.ended, err
}

// take takes an event in its order. The caller holds mu.
func (t *turn) take(e stream.Event) error {
	if t.ended {
		return nil
	}
	if t.printer.json {
		if err := t.printer.event(e, false); err != nil {
			return err
		}
	}
	t.chat.Outline = true
	updates, err := t.chat.Updates(e)
	for _, u := range updates {
		t.chat.Take(u)
		if err := t.show(u); err != nil || t.ended {
			return err
		}
	}
	return err
}

// show handles what an event changes. The caller holds mu. The turn begins with the message itself, and ends before the
// next User message or with a status that tells it: several changes of a chat may come as one, with the reply before
// the first status that names the turn.
func (t *turn) show(u client.Update) error {
	now := t.chat.Turn(t.message)
	switch u := u.(type) {
	case client.Deleted:
		return missingError{"the chat was deleted"}
	case *stream.Status:
		if t.first && !now.Begun && u.Ready == metav1.ConditionFalse || now.Held { // A person has to do something.
			return verdictError{u.Reason, u.Message}
		}
		if !t.printer.json && (u.Turn == t.message || !now.Begun && !t.cutsIn) {
			t.printer.standing(u)
		}
	}
	if t.ended = now.Ended; t.ended {
		t.printer.endLine()
		close(t.over)
	} else if !t.printer.json && (now.Begun || t.holdsUp(u)) {
		t.printer.show(u, false)
	}
	return nil
}

// holdsUp reports whether what the chat waits for holds up the message in its queue, too.
func (t *turn) holdsUp(u client.Update) bool {
	switch u.(type) {
	case *stream.RequiresAction, *stream.Retry:
		return !t.cutsIn
	}
	return false
}
