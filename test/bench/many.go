// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// many fills the cluster with chats of 20 messages of 4 KiB, all answered, and measures the manager that holds them.
// The manager is stopped while the bench plays its part and that of the generation pods.
func (b *bench) many(ctx context.Context, f *Figures, chats int) error {
	restore, err := b.withoutManager(ctx)
	if err != nil {
		return err
	}
	const turns = 10
	text := strings.Repeat("0123456789abcde ", 256)
	if err := some(ctx, chats, func(ctx context.Context, i int) error {
		return b.fill(ctx, namespace, fmt.Sprintf("many-%d", i), turns, text)
	}); err != nil {
		return err
	}
	if err := restore(ctx); err != nil {
		return err
	}
	f.ManyChats, err = b.managerMemory(ctx)
	return err
}

// untilLifted waits until the API server has noticed that the policies bind no longer.
func (b *bench) untilLifted(ctx context.Context) error {
	chat := &v1beta1.Chat{ObjectMeta: meta("many-probe")}
	if err := b.create(ctx, chat); err != nil {
		return err
	}
	for _, probe := range []func() error{
		func() error { return b.client.Status().Update(ctx, chat) },
		func() error {
			_, probe := chattest.AnsweredTurn(chat.DeepCopy(), "probe", time.Now())
			if err := b.client.Create(ctx, probe); err != nil {
				return err
			}
			return b.client.Delete(ctx, probe)
		},
	} {
		for err := probe(); err != nil; err = probe() {
			if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				return fmt.Errorf("probing the policies: %w", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	if err := b.client.Delete(ctx, chat); err != nil {
		return fmt.Errorf("removing the probe: %w", err)
	}
	return nil
}

// fill writes one chat with a history of so many turns, as a manager and its pods would have.
func (b *bench) fill(ctx context.Context, namespace, name string, turns int, text string) error {
	chat := chattest.In(namespace, chattest.Chat(name))
	if err := b.create(ctx, chat); err != nil {
		return err
	}
	rest := chat.DeepCopy()
	for range turns {
		question, answer := chattest.AnsweredTurn(rest, text, time.Now())
		says := question.Status
		if err := b.create(ctx, question); err != nil {
			return err
		}
		question.Status = says
		if err := b.client.Status().Update(ctx, question); err != nil {
			return fmt.Errorf("settling message %s: %w", question.Name, err)
		}
		if err := b.create(ctx, answer); err != nil {
			return err
		}
	}
	if err := b.client.Status().Update(ctx, rest); err != nil {
		return fmt.Errorf("filling chat %s: %w", name, err)
	}
	return nil
}
