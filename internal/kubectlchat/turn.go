// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// drain is how long the end of a turn may take to come through the stream once the message's own status has told it.
const drain = 5 * time.Second

// sendAndFollow opens the stream first, so that nothing of the reply can be missed, and then creates the message.
func (s *session) sendAndFollow(ctx context.Context, from source, chat, text string, so sendOptions) error {
	t := &turn{
		printer: newPrinter(s.options.Out, s.options.ErrOut, s.options.output == "json", s.hint(chat)),
		cutsIn:  so.interrupt, over: make(chan struct{}),
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	connected, streamed, verdict := make(chan struct{}), make(chan error, 1), make(chan verdictOfMessage, 1)
	connect := sync.OnceFunc(func() { close(connected) })
	running.Go(func() { streamed <- from.follow(ctx, s.objects.namespace, chat, false, connect, t.event) })
	select {
	case <-connected:
	case err := <-streamed:
		return err
	}
	m, err := s.objects.create(ctx, chat, text, so)
	if err != nil {
		return err
	}
	if err := t.begin(m.Name); err != nil {
		return err
	}
	running.Go(func() { verdict <- s.objects.settled(ctx, m.Name, func(string) {}) })
	return t.await(streamed, verdict)
}

// await waits until the turn was shown to its end and the message has had its last word, or one of the two has failed.
func (t *turn) await(streamed <-chan error, verdict <-chan verdictOfMessage) error {
	defer t.stop()
	select {
	case <-t.over:
		return (<-verdict).err
	case err := <-streamed:
		if err != nil {
			return err
		}
		return (<-verdict).err
	case v := <-verdict:
		if !v.committed || t.shown() { // a message that was rejected has no turn
			return v.err
		}
		select { // what the stream still has of the turn is on its way
		case <-t.over:
		case failed := <-streamed:
			return cmp.Or(v.err, failed)
		case <-time.After(drain):
		}
		return v.err
	}
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
	// cutsIn is true for a message that waits for nobody.
	cutsIn bool
	// over is closed when the turn's end was shown.
	over chan struct{}

	mu      sync.Mutex
	message string
	through lens
	early   []stream.Event // what came before the message's name was known
	began   bool
	ended   bool
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
	if t.printer.json && !t.ended {
		if err := t.printer.show(e, false); err != nil {
			return err
		}
	}
	told, err := t.through.pass(e)
	for _, e := range told {
		if err := t.show(e); err != nil {
			return err
		}
	}
	return err
}

// show handles what an event is to be read as. The caller holds mu. The turn begins with the message itself, and ends
// before the next User message or with a status that tells it: several changes of a chat may come as one, with the
// reply before the first status that names the turn.
func (t *turn) show(e stream.Event) error {
	if t.ended {
		return nil
	}
	var err error
	switch e.Name {
	case stream.EventDeleted:
		err = errors.New("the chat was deleted")
	case stream.EventMessage:
		err = t.committed(e.Data)
	case stream.EventStatus:
		err = t.status(e.Data)
	}
	if err != nil {
		return err
	}
	if t.concerns(e) {
		err = t.printer.show(e, false)
	}
	if t.ended {
		t.printer.endLine()
		close(t.over)
	}
	return err
}

// concerns reports whether an event is to be shown to a person.
// What the chat waits for holds up a message in its queue too.
func (t *turn) concerns(e stream.Event) bool {
	waits := e.Name == stream.EventRequiresAction && !t.cutsIn
	return !t.printer.json && !t.ended && (t.began || waits)
}

func (t *turn) committed(data []byte) error {
	var m stream.MessageCommitted
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	mine := m.Message.Name == t.message
	t.ended = t.began && !mine && m.Message.Role == v1alpha1.RoleUser
	t.began = t.began || mine
	return nil
}

func (t *turn) status(data []byte) error {
	var status stream.Status
	if err := json.Unmarshal(data, &status); err != nil {
		return fmt.Errorf("reading a status: %w", err)
	}
	mine := status.Turn == t.message
	t.began = t.began || mine
	t.ended = t.began && (!mine || status.Ready == metav1.ConditionTrue || status.Ready == metav1.ConditionFalse)
	return nil
}
