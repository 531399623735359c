// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
)

// maxAsks is how often a plan may ask for something before it has to be final. Each answer is asked for once, and what
// there is to ask for follows from the one before: the prompt,
// the models, the calls or the sub-chats, the pod, and why there is none.
const maxAsks = 10

// decide is the plan of this reconcile. What it asks for is provided, until it is final. An error of the plan is a
// fault of Parley itself, which trying again does not mend.
func (r *Reconciler) decide(ctx context.Context, s *scope) (plan.Plan, error) {
	for range maxAsks {
		todo, err := plan.Advance(s.facts)
		if err != nil {
			return todo, reconcile.TerminalError(err)
		}
		if todo.Asks.Nothing() {
			return todo, nil
		}
		if err := r.provide(ctx, s, &todo); err != nil {
			return todo, err
		}
	}
	return plan.Plan{},
		reconcile.TerminalError(fmt.Errorf("deciding about chat %s: the plan asks for ever more", keyOf(s.facts.Chat)))
}

// provide adds to the facts what the plan asks for.
func (r *Reconciler) provide(ctx context.Context, s *scope, todo *plan.Plan) error {
	asks := &todo.Asks
	if asks.Prompt {
		return r.createPrompt(ctx, s)
	}
	for _, name := range asks.Models {
		if err := r.readNamedModel(ctx, s, name); err != nil {
			return err
		}
	}
	for _, name := range asks.SubChats {
		if err := r.readSubChat(ctx, s, name); err != nil {
			return err
		}
	}
	if asks.Calls != "" {
		return r.readCalls(ctx, s, todo)
	}
	if asks.Pod && len(asks.Models)+len(asks.SubChats) == 0 { // Otherwise there may be no attempt.
		return r.provideStart(ctx, s, todo)
	}
	return nil
}

// provideStart provides what an attempt needs to begin: a slot and a pod.
// Why there is none is one more fact to decide from.
func (r *Reconciler) provideStart(ctx context.Context, s *scope, todo *plan.Plan) error {
	if held := r.Gate.Enter(asSlot(s.facts.Chat)); held != nil {
		s.facts.NoCapacity = held.String()
		return nil
	}
	pod, err := r.choosePod(ctx, s, todo)
	if refused, ok := errors.AsType[*podRefusedError](err); ok {
		s.facts.PodRefused = refused.words
		s.lookAgain = plan.Sooner(s.lookAgain, max(refused.until.Sub(s.facts.Now), time.Millisecond))
		return nil
	}
	s.facts.Pod = pod
	return err
}

// createPrompt creates the message that spec.prompt stands for. Until there is one no other message is taken up, and
// the facts say why there is none.
func (r *Reconciler) createPrompt(ctx context.Context, s *scope) error {
	chat, open := s.facts.Chat, s.facts.Open
	s.facts.PromptMissing, s.facts.Open = false, nil
	prompt := plan.PromptMessage(chat)
	err := r.Client.Create(ctx, prompt)
	if apierrors.IsAlreadyExists(err) {
		if prompt, err = r.existingPrompt(ctx, s); err != nil || prompt == nil {
			return err
		}
	}
	if words := refusalOf(err, prompt.Name); words != "" {
		s.facts.NoPrompt = &plan.NoPrompt{Message: prompt.Name, Refused: words}
		s.lookAgain = plan.Sooner(s.lookAgain, refusalLasts)
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating message %s for spec.prompt: %w", prompt.Name, err)
	}
	s.facts.Open = slices.Insert(open, 0, plan.MessageOf(prompt))
	return nil
}

// existingPrompt is the message that has the prompt's name, if it is the prompt and the cache does not show it yet.
// Otherwise the removal of that message enqueues the chat.
func (r *Reconciler) existingPrompt(ctx context.Context, s *scope) (*v1alpha1.ChatMessage, error) {
	chat := s.facts.Chat
	there, err := r.message(ctx, r.Live, chat.Namespace, plan.PromptName(chat))
	switch {
	case err != nil || there == nil:
		return nil, err
	case !plan.IsPrompt(chat, there):
		s.facts.NoPrompt = &plan.NoPrompt{Message: there.Name}
		return nil, nil
	case !plan.IsOpen(chat, there):
		return nil, nil
	}
	return there, nil
}
