// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/podstate"
)

// creation lets one pod at a time be created in a namespace: chats that come together share it, and its refusal. The
// zero value is ready.
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

// choosePod gives the attempt a pod: one that is there and has room, else a new one.
func (r *Reconciler) choosePod(ctx context.Context, s *scope, todo *plan.Plan) (string, error) {
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

// podWithHistory is the pod that has the chat's history at hand: the one that wrote its newest message, or has just
// been lost and then is none.
func (r *Reconciler) podWithHistory(ctx context.Context, s *scope) (string, error) {
	chat := s.facts.Chat
	if s.facts.PodLost || chat.Status.History.Head == "" {
		return "", nil
	}
	if chat.Status.Generation != nil {
		return chat.Status.Generation.Pod, nil
	}
	head, err := r.message(ctx, r.Client, chat.Namespace, chat.Status.History.Head)
	if err != nil || head == nil || head.Spec.Generation == nil {
		return "", err
	}
	return head.Spec.Generation.Pod, nil
}

func (r *Reconciler) podsIn(ctx context.Context, s *scope) ([]placement.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(s.facts.Chat.Namespace),
		client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration})
	if err != nil {
		return nil, fmt.Errorf("listing generation pods: %w", err)
	}
	pods, terms := make([]placement.Pod, 0, len(list.Items)), r.termsOf(s)
	for i := range list.Items {
		pods = append(pods, podstate.Placement(&list.Items[i], s.facts.Now, terms))
	}
	return pods, nil
}
