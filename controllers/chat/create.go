// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/rand"

	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
)

// creation lets one pod at a time be created in a namespace: chats that come together share it, and its refusal. The zero value is
// ready.
type creation struct {
	flights singleflight.Group
	mu      sync.Mutex
	refused map[string]*podRefusedError // by namespace
}

// refusal is why the namespace gets no pod now; nil if that has to be tried.
func (c *creation) refusal(namespace string, now time.Time) *podRefusedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.refused[namespace]; e != nil && now.Before(e.until) {
		return e
	}
	delete(c.refused, namespace)
	return nil
}

func (c *creation) refuse(namespace string, e *podRefusedError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = map[string]*podRefusedError{}
	}
	c.refused[namespace] = e
}

// decide is the plan of this pass. An attempt without a pod cannot begin: why there is none is one more fact to decide from.
func (r *Reconciler) decide(ctx context.Context, s *seen) (plan.Plan, error) {
	todo, err := advance(s)
	if err != nil || !todo.NeedsPod {
		return todo, err
	}
	pod, err := r.choosePod(ctx, s, &todo)
	if refused, ok := errors.AsType[*podRefusedError](err); ok {
		s.facts.PodRefused = refused.words
		s.lookAgain = plan.Sooner(s.lookAgain, max(refused.until.Sub(s.facts.Now), time.Millisecond))
		return advance(s)
	}
	if err != nil {
		return todo, err
	}
	todo.Status.Generation.Pod = pod
	return todo, nil
}

// choosePod gives the attempt a pod: one that is there and has room, else a new one.
func (r *Reconciler) choosePod(ctx context.Context, s *seen, todo *plan.Plan) (string, error) {
	chat := s.facts.Chat
	settings := r.settingsOf(s)
	prefer, err := r.podWithHistory(ctx, s)
	if err != nil {
		return "", err
	}
	want := placement.Want{Template: settings.Hash(), After: todo.PodAfter, Prefer: prefer, Capacity: r.PodCapacity}
	choose := func() (string, bool, error) {
		pods, err := r.podsIn(ctx, s)
		if err != nil {
			return "", false, err
		}
		name, ok := r.Ledger.Choose(chat.Namespace, pods, want, keyOf(chat).String())
		return name, ok, nil
	}
	for {
		if name, ok, err := choose(); ok || err != nil {
			return name, err
		}
		mine := ""
		_, err, _ := r.creation.flights.Do(chat.Namespace, func() (any, error) {
			name, ok, err := choose() // Another one may have come since.
			if !ok && err == nil {
				name, err = r.createPod(ctx, settings, keyOf(chat).String())
			}
			mine = name
			return nil, err
		})
		if err != nil || mine != "" {
			return mine, err
		}
	}
}

// createPod creates a pod for the chat, and what pods need in their namespace.
func (r *Reconciler) createPod(ctx context.Context, settings podspec.Settings, chat string) (string, error) {
	namespace, now := settings.Namespace, r.Now()
	if refused := r.creation.refusal(namespace, now); refused != nil {
		return "", refused
	}
	pod := podspec.Generation(settings, "parley-generation-"+rand.String(6))
	err := r.EnsureAccess(ctx, namespace)
	if err == nil {
		err = r.Client.Create(ctx, pod)
	}
	if words := refusalOf(err, pod.Name); words != "" {
		refused := &podRefusedError{words: words, until: now.Add(refusalLasts)}
		r.creation.refuse(namespace, refused)
		return "", refused
	}
	if err != nil {
		return "", fmt.Errorf("creating a generation pod in namespace %s: %w", namespace, err)
	}
	r.Ledger.Created(namespace, placement.Pod{
		Name: pod.Name, Template: settings.Hash(), Created: now, Usable: true,
	}, chat)
	return pod.Name, nil
}
