// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
)

// specimen is what Parley wrote in the course of one turn of one step.
type specimen struct {
	running, waiting v1beta1.ChatStatus
	asked            v1beta1.ChatMessage
	replied          v1beta1.ChatMessage
}

// specimen reads what was written for a chat that has just been answered.
func (b *bench) specimen(ctx context.Context, name string) (*specimen, error) {
	var chat v1beta1.Chat
	var s specimen
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &chat); err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", name, err)
	}
	for message, into := range map[string]*v1beta1.ChatMessage{chat.Status.Turn.Message: &s.asked,
		chat.Status.History.Head: &s.replied} {
		if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: message}, into); err != nil {
			return nil, fmt.Errorf("reading message %s: %w", message, err)
		}
	}
	s.waiting, s.running = chat.Status, *b.follow.lastRunning(name).status
	s.running.Generation.Pod = "none" // So that no pod sets to work.
	return &s, nil
}

// bare makes the same writes as the turns that have just been measured, without Parley: for each chat one after
// another, all chats at once. Parley's manager is stopped meanwhile, and the policies that let only Parley write that
// are lifted. It adds the figures of its rounds.
func (b *bench) bare(ctx context.Context, to *series, like string, chats int, reported bool) error {
	s, err := b.specimen(ctx, like+"0")
	if err != nil {
		return err
	}
	restore, err := b.withoutManager(ctx)
	if err != nil {
		return err
	}
	objects := make([]*v1beta1.Chat, chats)
	if err := each(ctx, chats, func(ctx context.Context, i int) error {
		objects[i] = &v1beta1.Chat{ObjectMeta: meta(fmt.Sprint("bare-", like, i))}
		return b.create(ctx, objects[i])
	}); err != nil {
		return err
	}
	for round := range rounds + 1 {
		if err := b.round(ctx, to.unless(round == 0), chats, func() error {
			return each(ctx, chats, func(ctx context.Context, i int) error {
				return b.bareTurn(ctx, s, objects[i], round, reported)
			})
		}); err != nil {
			return err
		}
	}
	if err := b.removeBare(ctx, objects); err != nil {
		return err
	}
	return restore(ctx)
}

// lifted are the policies that let only generation pods write replies, and only the manager status.
var lifted = []string{"parley-generated-messages", "parley-status"}

// withoutManager stops the manager and lifts the policies that let only Parley write what it writes;
// restore undoes both.
func (b *bench) withoutManager(ctx context.Context) (restore func(context.Context) error, err error) {
	if err := b.scaleManager(ctx, 0); err != nil {
		return nil, err
	}
	bindings := make([]admissionregistrationv1.ValidatingAdmissionPolicyBinding, len(lifted))
	for i, name := range lifted {
		if err := b.client.Get(ctx, client.ObjectKey{Name: name}, &bindings[i]); err != nil {
			return nil, fmt.Errorf("reading policy %s: %w", name, err)
		}
		if err := b.client.Delete(ctx, &bindings[i]); err != nil {
			return nil, fmt.Errorf("lifting policy %s: %w", name, err)
		}
	}
	if err := b.untilLifted(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for i := range bindings {
			bindings[i].ObjectMeta = metav1.ObjectMeta{Name: bindings[i].Name, Labels: bindings[i].Labels}
			if err := b.create(ctx, &bindings[i]); err != nil {
				return err
			}
		}
		return b.scaleManager(ctx, 1)
	}, nil
}

// bareTurn writes what a turn of one step writes, in the same order; reported is whether the User message says that it
// is being answered. A turn that is over quickly saves that write, so the bare client does too if Parley did.
func (b *bench) bareTurn(ctx context.Context, s *specimen, chat *v1beta1.Chat, round int, reported bool) error {
	asked := &v1beta1.ChatMessage{ObjectMeta: meta(fmt.Sprintf("%s-m%d", chat.Name, round)),
		Spec: *s.asked.Spec.DeepCopy()}
	asked.Spec.ChatRef.Name = chat.Name
	replied := &v1beta1.ChatMessage{ObjectMeta: meta(asked.Name + "-reply"), Spec: *s.replied.Spec.DeepCopy()}
	replied.Spec.ChatRef.Name = chat.Name
	replied.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(chat,
		v1beta1.GroupVersion.WithKind("Chat"))}
	settled := s.asked.Status
	working := *settled.DeepCopy()
	working.Conditions[0].Reason = string(v1beta1.ReasonAnswering)
	for _, write := range []func() error{
		func() error { return b.client.Create(ctx, asked) },
		func() error { return b.bareStatus(ctx, chat, &s.running) },
		func() error {
			if !reported {
				return nil
			}
			return b.bareSettle(ctx, asked, &working)
		},
		func() error { return b.client.Create(ctx, replied) },
		func() error { return b.bareStatus(ctx, chat, &s.waiting) },
		func() error { return b.bareSettle(ctx, asked, &settled) },
	} {
		if err := write(); err != nil {
			return fmt.Errorf("writing as a bare client: %w", err)
		}
	}
	return nil
}

func (b *bench) bareStatus(ctx context.Context, chat *v1beta1.Chat, status *v1beta1.ChatStatus) error {
	version := chat.Status.History.Version
	status.DeepCopyInto(&chat.Status)
	chat.Status.History.Version = version + 1
	return b.client.Status().Update(ctx, chat)
}

func (b *bench) bareSettle(ctx context.Context, m *v1beta1.ChatMessage, status *v1beta1.ChatMessageStatus) error {
	status.DeepCopyInto(&m.Status)
	return b.client.Status().Update(ctx, m)
}

// removeBare removes what the bare client wrote, so that the manager does not take it for its own.
func (b *bench) removeBare(ctx context.Context, chats []*v1beta1.Chat) error {
	return each(ctx, len(chats), func(ctx context.Context, i int) error {
		for round := range rounds + 1 {
			for _, name := range []string{fmt.Sprintf("%s-m%d", chats[i].Name, round),
				fmt.Sprintf("%s-m%d-reply", chats[i].Name, round)} {
				if err := b.client.Delete(ctx, &v1beta1.ChatMessage{ObjectMeta: meta(name)}); err != nil {
					return fmt.Errorf("removing message %s: %w", name, err)
				}
			}
		}
		if err := b.client.Delete(ctx, chats[i]); err != nil {
			return fmt.Errorf("removing chat %s: %w", chats[i].Name, err)
		}
		return nil
	})
}
