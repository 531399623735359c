// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// labelKey carries the name that an operation gave a generated message: its own name follows from the fence.
const labelKey = "model"

// attempt waits for the attempt under way.
func (d *driver) attempt(ctx context.Context) (*v1beta1.Chat, error) {
	for {
		o := watched.get(d.chat)
		if o.chat != nil && o.chat.Status.Generation != nil && fenceOf(o.chat) != d.answered {
			return o.chat, nil
		}
		select {
		case <-o.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for an attempt: %w", ctx.Err())
		}
	}
}

// look remembers the attempt under way: it may be given up.
func (d *driver) look() {
	for _, other := range d.others() {
		other.look()
	}
	chat := watched.get(d.chat).chat
	if chat == nil || chat.Status.Generation == nil || fenceOf(chat) == d.answered {
		return
	}
	if !slices.ContainsFunc(d.open, func(c v1beta1.Chat) bool { return fenceOf(&c) == fenceOf(chat) }) {
		d.open = append(d.open, *chat)
	}
}

// settle remembers that the attempt has its answer.
func (d *driver) settle(chat *v1beta1.Chat) {
	d.answered = fenceOf(chat)
	d.open = slices.DeleteFunc(d.open, func(c v1beta1.Chat) bool { return fenceOf(&c) == d.answered })
}

// answer ends the attempt under way with content, and with what else is said.
func (d *driver) answer(ctx context.Context, key string, kinds []string, more ...chattest.Reply) error {
	chat, err := d.attempt(ctx)
	if err != nil {
		return err
	}
	return d.endAttempt(ctx, chat, append([]chattest.Reply{named(key), d.content(chat, key, kinds)}, more...)...)
}

// endAttempt ends the attempt under way.
func (d *driver) endAttempt(ctx context.Context, chat *v1beta1.Chat, replies ...chattest.Reply) error {
	d.settle(chat)
	return d.create(ctx, chattest.Answer(chat, replies...))
}

// named gives the message the operation's name.
func named(key string) chattest.Reply {
	return func(m *v1beta1.ChatMessage) { m.Labels = map[string]string{labelKey: key} }
}

// content is what the model or the tools said.
func (d *driver) content(chat *v1beta1.Chat, key string, kinds []string) chattest.Reply {
	switch chat.Status.Generation.Action {
	case v1beta1.ActionExecuteTools:
		return chattest.Results(key)
	case v1beta1.ActionCompact:
		return func(m *v1beta1.ChatMessage) {
			chattest.Compacts("They spoke.", chattest.From(d.unanswered()))(m)
			chattest.Costs(priceOfReply)(m)
		}
	}
	return func(m *v1beta1.ChatMessage) {
		chattest.Says("Fine.")(m)
		chattest.CallsOf(toolCalls(key, kinds)...)(m)
		chattest.Fills(0, 1)(m)
		chattest.Costs(priceOfReply)(m)
		d.waitsFor(key, kinds)(m)
	}
}

// unanswered is the index of the first message at the end of the history that nobody has answered,
// or the history's length.
func (d *driver) unanswered() int64 {
	o := watched.get(d.chat)
	history, _ := d.walk(o)
	n := len(history)
	for n > 0 && strings.HasPrefix(history[n-1], string(v1beta1.RoleUser)) {
		n--
	}
	return int64(n)
}

// report ends the attempt under way without content.
func (d *driver) report(ctx context.Context, how chattest.Reply) error {
	chat, err := d.attempt(ctx)
	if err != nil {
		return err
	}
	return d.endAttempt(ctx, chat, named("report"), how)
}

// late answers an attempt that was given up, if there is one.
func (d *driver) late(ctx context.Context, key string) error {
	now := watched.get(d.chat).chat
	for i, chat := range slices.Backward(d.open) {
		f := fenceOf(&chat)
		if now.Status.Generation != nil && f == fenceOf(now) || now.Status.History.Version < f.version {
			continue
		}
		d.open = slices.Delete(d.open, i, i+1)
		m := chattest.Answer(&chat, named(key), d.content(&chat, key, nil))
		if err := d.create(ctx, m); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}
	return nil
}
