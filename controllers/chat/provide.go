// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/pods/placement"
)

// maxAsks is how often a plan may ask for something before it has to be final. Each answer is asked for once, and what
// there is to ask for follows from the one before: the agents, the prompt,
// the models, the calls or the sub-chats, the MCP servers, the pod, and why there is none, the turn's summary.
const maxAsks = 12

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
	switch {
	case asks.Agents != "": // Before the others, which may be about these.
		return r.actuator.changeAgents(ctx, s, asks.Agents)
	case asks.Prompt:
		return r.actuator.createPrompt(ctx, s)
	}
	if err := r.provideNamed(ctx, s, asks); err != nil {
		return err
	}
	switch {
	case asks.Workspace:
		return r.provideWorkspace(ctx, s)
	case asks.Servers:
		return r.servers.provide(ctx, s)
	case asks.Summary != "":
		return r.gatherer.readSummary(ctx, s, todo)
	case asks.Calls != "":
		return r.gatherer.readCalls(ctx, s, todo)
	}
	if asks.Pod && len(asks.Models)+len(asks.SubChats) == 0 { // Otherwise there may be no attempt.
		return r.provideStart(ctx, s, todo)
	}
	return nil
}

// provideNamed reads the models and the sub-chats that the plan asks for by name.
func (r *Reconciler) provideNamed(ctx context.Context, s *scope, asks *plan.Asks) error {
	for _, name := range asks.Models {
		if err := r.gatherer.models.readNamedModel(ctx, s, name); err != nil {
			return err
		}
	}
	for _, name := range asks.SubChats {
		if err := r.gatherer.family.readSubChat(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// provideStart provides what an attempt needs to begin: a call of its model, a slot and a pod.
// Why there is none is one more fact to decide from.
func (r *Reconciler) provideStart(ctx context.Context, s *scope, todo *plan.Plan) error {
	if !r.models.enter(s, todo) {
		return nil
	}
	if held := r.slots.enter(s.facts.Chat); held != nil {
		s.facts.NoCapacity = held.String()
		return nil
	}
	prefer, err := r.gatherer.podWithHistory(ctx, s)
	if err != nil {
		return err
	}
	pod, err := r.options.Pods.Assign(ctx, keyOf(s.facts.Chat), s.configs,
		placement.Want{After: todo.PodAfter, Prefer: prefer})
	if refused, ok := errors.AsType[*placement.RefusedError](err); ok {
		s.facts.PodRejected = refused.Words
		s.lookAgain = plan.Sooner(s.lookAgain, max(refused.Until.Sub(s.facts.Now), time.Millisecond))
		return nil
	}
	s.facts.Pod = pod
	return err
}
