// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
)

// Turn shows the turn of one message. Its methods may be called by several goroutines.
type Turn struct {
	// Printer shows it.
	Printer *Printer
	// First is true for the turn that a chat begins with, and CutsIn for a message that waits for nobody.
	First, CutsIn bool
	// Over is closed when the turn's end was shown.
	Over chan struct{}

	mu      sync.Mutex
	message string
	early   []stream.Event // what came before the message's name was known
	chat    client.Transcript
	ended   bool
}

// OutOfReach tells why nothing is shown at the moment.
func (t *Turn) OutOfReach(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Printer.OutOfReach(err)
}

// Stop ends what is shown.
func (t *Turn) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Printer.EndLine()
}

// Waits is what the chat waits for, in words, and whether that is a person or a client; empty: nothing that is known.
func (t *Turn) Waits() (words string, requiresAction bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.chat.Status
	if now == nil {
		return "", false
	}
	if now.Wait != nil {
		words = now.Wait.Reason + ": " + now.Wait.Message
	}
	return words, now.Phase == v1alpha1.ChatRequiresAction
}

// Begin tells the name of the message.
func (t *Turn) Begin(message string) error {
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

// Event takes an event of the chat. It has had enough when the turn is over.
func (t *Turn) Event(e stream.Event) (bool, error) {
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
func (t *Turn) take(e stream.Event) error {
	if t.ended {
		return nil
	}
	if t.Printer.JSON {
		if err := t.Printer.Event(e, false); err != nil {
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
func (t *Turn) show(u client.Update) error {
	now := t.chat.Turn(t.message)
	switch u := u.(type) {
	case client.Deleted:
		return cli.NotFoundError("the chat was deleted")
	case *stream.Status:
		if t.needsPerson(u, &now) {
			return cli.NotReadyError{Reason: u.Reason, Message: u.Message}
		}
		t.standing(u, &now)
	}
	switch t.ended = now.Ended; {
	case t.ended:
		t.Printer.EndLine()
		close(t.Over)
	case t.Printer.JSON:
	case now.Begun, t.holdsUp(u):
		t.Printer.Show(u, false)
	}
	return nil
}

// needsPerson reports whether the turn cannot begin, or cannot go on, until a person does something.
func (t *Turn) needsPerson(s *stream.Status, now *client.Turn) bool {
	return t.First && !now.Begun && s.Ready == metav1.ConditionFalse || now.Held
}

// standing shows what holds the message up.
func (t *Turn) standing(s *stream.Status, now *client.Turn) {
	if !t.Printer.JSON && (s.Turn == t.message || !now.Begun && !t.CutsIn) {
		t.Printer.standing(s)
	}
}

// holdsUp reports whether what the chat waits for holds up the message in its queue, too.
func (t *Turn) holdsUp(u client.Update) bool {
	switch u.(type) {
	case *stream.RequiresAction, *stream.Retry:
		return !t.CutsIn
	}
	return false
}
