// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"

	"parley.dev/parley/api/v1alpha1"
)

// burst gives so many chats a message at once, with a model that answers at once. A first round, which is not counted,
// warms up the generation pods that they need.
func (b *bench) burst(ctx context.Context, f *Figures, chats int) error {
	if err := b.script(ctx, answer(0)); err != nil {
		return err
	}
	prefix := fmt.Sprintf("burst%d-", chats)
	if err := each(ctx, chats, func(ctx context.Context, i int) error {
		return b.create(ctx, &v1alpha1.Chat{ObjectMeta: meta(fmt.Sprint(prefix, i))})
	}); err != nil {
		return err
	}
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	written, err := b.settledWrites(ctx)
	if err != nil {
		return err
	}
	const rounds = 4
	best := 0.0
	for round := range rounds {
		began := time.Now()
		if err := each(ctx, chats, func(ctx context.Context, i int) error {
			return b.say(ctx, fmt.Sprint(prefix, i), fmt.Sprintf("%s%d-m%d", prefix, i, round))
		}); err != nil {
			return err
		}
		if err := b.follow.until(ctx, func(all map[string]*v1alpha1.Chat) bool {
			done := 0
			for name, chat := range all {
				if strings.HasPrefix(name, prefix) && isAnswered(chat, int64(2*round+2)) {
					done++
				}
			}
			return done == chats
		}); err != nil {
			return err
		}
		if rate := float64(chats) / time.Since(began).Seconds(); round > 0 {
			best = max(best, rate)
		}
	}
	after, err := b.usage(ctx)
	if err != nil {
		return err
	}
	now, err := b.settledWrites(ctx)
	if err != nil {
		return err
	}
	f.CPU = after.cpu.minus(before.cpu)
	f.Burst[fmt.Sprint(chats)] = Burst{TurnsPerSecond: best, WritesPerTurn: (now.writes - written.writes) / float64(rounds*chats)}
	return nil
}

// bare makes the same writes as a turn of one step does, without Parley: for each chat one after another, all chats at
// once. Parley's manager is stopped meanwhile. A turn that is over quickly saves one write, so the bare client does too if
// Parley did.
func (b *bench) bare(ctx context.Context, f *Figures, sizes ...int) error {
	if err := b.scaleManager(ctx, 0); err != nil {
		return err
	}
	for _, chats := range sizes {
		prefix := fmt.Sprintf("bare%d-", chats)
		objects := make([]*v1alpha1.Chat, chats)
		if err := each(ctx, chats, func(ctx context.Context, i int) error {
			objects[i] = &v1alpha1.Chat{ObjectMeta: meta(fmt.Sprint(prefix, i))}
			return b.create(ctx, objects[i])
		}); err != nil {
			return err
		}
		best := 0.0
		for round := range 3 {
			began := time.Now()
			if err := each(ctx, chats, func(ctx context.Context, i int) error {
				return b.bareTurn(ctx, objects[i], round, f.Burst[fmt.Sprint(chats)].WritesPerTurn > 5.5)
			}); err != nil {
				return err
			}
			best = max(best, float64(chats)/time.Since(began).Seconds())
		}
		result := f.Burst[fmt.Sprint(chats)]
		result.BarePerSecond, result.ShareOfBare = best, result.TurnsPerSecond/best
		f.Burst[fmt.Sprint(chats)] = result
	}
	return b.scaleManager(ctx, 1)
}

// bareTurn writes what a turn of one step writes, in the same order and of the same size; reported is whether the User
// message says that it is being answered.
func (b *bench) bareTurn(ctx context.Context, chat *v1alpha1.Chat, round int, reported bool) error {
	asked := &v1alpha1.ChatMessage{ObjectMeta: meta(fmt.Sprintf("%s-m%d", chat.Name, round)), Spec: v1alpha1.ChatMessageSpec{
		ChatRef: v1alpha1.ChatReference{Name: chat.Name}, Content: "What do you see?",
	}}
	replied := asked.DeepCopy()
	replied.Name += "-reply"
	replied.Spec.Content = strings.Repeat("x", 600) // As large as the account of an attempt.
	writes := []func() error{
		func() error { return b.client.Create(ctx, asked) },
		func() error { return b.bareStatus(ctx, chat, v1alpha1.ChatRunning) },
		func() error {
			if !reported {
				return nil
			}
			return b.bareSettle(ctx, asked, "BeingAnswered", metav1.ConditionUnknown)
		},
		func() error { return b.client.Create(ctx, replied) },
		func() error { return b.bareStatus(ctx, chat, v1alpha1.ChatWaiting) },
		func() error { return b.bareSettle(ctx, asked, "Answered", metav1.ConditionTrue) },
	}
	for _, write := range writes {
		if err := write(); err != nil {
			return fmt.Errorf("writing as a bare client: %w", err)
		}
	}
	return nil
}

func (b *bench) bareStatus(ctx context.Context, chat *v1alpha1.Chat, phase v1alpha1.ChatPhase) error {
	chat.Status.Phase = phase
	chat.Status.History.Version++
	chat.Status.History.Head = chat.Name + "-m0-reply"
	chat.Status.Turn = &v1alpha1.TurnStatus{Message: chat.Name + "-m0", LastRole: v1alpha1.RoleUser}
	chat.Status.Conditions = conditions("Generating", metav1.ConditionUnknown)
	if phase == v1alpha1.ChatWaiting {
		chat.Status.Conditions = conditions("Answered", metav1.ConditionTrue)
	}
	return b.client.Status().Update(ctx, chat)
}

func (b *bench) bareSettle(ctx context.Context, m *v1alpha1.ChatMessage, reason string, ready metav1.ConditionStatus) error {
	before := m.DeepCopy()
	m.Status.State = v1alpha1.MessageCommitted
	m.Status.Index = new(int64(1))
	m.Status.Conditions = conditions(reason, ready)
	return b.client.Status().Patch(ctx, m, client.MergeFrom(before))
}

func conditions(reason string, ready metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: reason, Message: "As long as Parley's own.", LastTransitionTime: metav1.Now(),
	}}
}

// each runs n at once and waits for all.
func each(ctx context.Context, n int, run func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() error { return run(ctx, i) })
	}
	return group.Wait()
}
