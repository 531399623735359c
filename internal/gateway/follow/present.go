// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"reflect"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// present tells a client how the chat stands: the queue, the status, the error and what a person must do.
type present struct {
	queue     Queue // nil: names are all that is told of messages that wait
	encodings *Encodings
	out       outlet
	shown     shown
}

// shown is what the client was told of the present.
type shown struct {
	queue        []stream.QueuedMessage
	queued       bool // whether queue was sent at all
	queueRetry   bool // whether it was sent without all that should be known
	status       *stream.Status
	errorVersion int64
	action       *stream.RequiresAction
	retryVersion int64
	retryAttempt int32
}

// forget makes the present be told again.
func (p *present) forget() { p.shown = shown{} }

// whole reports whether all was told that there is.
func (p *present) whole() bool { return !p.shown.queueRetry }

// tell sends the queue, the status, the error and what a person must do, as far as the client was not told.
func (p *present) tell(ctx context.Context, chat *v1alpha1.Chat) error {
	if err := p.tellQueue(ctx, chat); err != nil {
		return err
	}
	if status := statusOf(chat); p.shown.status == nil || !reflect.DeepEqual(*p.shown.status, status) {
		if err := p.send(chat, stream.EventStatus, status); err != nil {
			return err
		}
		p.shown.status = &status
	}
	for _, send := range []func(*v1alpha1.Chat) error{p.tellError, p.tellRetry, p.tellAction} {
		if err := send(chat); err != nil {
			return err
		}
	}
	return nil
}

// send sends what follows from the chat alone.
func (p *present) send(chat *v1alpha1.Chat, name string, data any) error {
	event, err := p.encodings.event(chat, name, data)
	if err != nil {
		return err
	}
	return p.out(event)
}

// tellError says why the turn failed, once per version of the history.
func (p *present) tellError(chat *v1alpha1.Chat) error {
	version := chat.Status.History.Version
	if chat.Status.LastError == nil || p.shown.errorVersion == version {
		return nil
	}
	if err := p.send(chat, stream.EventError, errorOf(chat)); err != nil {
		return err
	}
	p.shown.errorVersion = version
	return nil
}

// tellRetry tells of each failed attempt once.
func (p *present) tellRetry(chat *v1alpha1.Chat) error {
	version, retry := chat.Status.History.Version, chat.Status.Retry
	if retry == nil || p.shown.retryVersion == version && p.shown.retryAttempt == retry.Attempt {
		return nil
	}
	if err := p.send(chat, stream.EventRetry, retryOf(chat)); err != nil {
		return err
	}
	p.shown.retryVersion, p.shown.retryAttempt = version, retry.Attempt
	return nil
}

// tellAction says what a person must do, once per version of the history, and again when somebody has decided about a
// call.
func (p *present) tellAction(chat *v1alpha1.Chat) error {
	if chat.Status.RequiresAction == nil {
		return nil
	}
	action := actionOf(chat)
	if p.shown.action != nil && reflect.DeepEqual(*p.shown.action, action) {
		return nil
	}
	if err := p.send(chat, stream.EventRequiresAction, action); err != nil {
		return err
	}
	p.shown.action = &action
	return nil
}
