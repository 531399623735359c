// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/podstate"
	"parley.dev/parley/internal/turn"
)

// attemptDeadline is the age at which an attempt counts as lost whatever its pod says: the generator ends a silent call
// after 10 minutes by itself, so one that is older than an hour has been forgotten.
const attemptDeadline = time.Hour

// readPod finds out whether the pod of the attempt can still answer.
func (r *Reconciler) readPod(ctx context.Context, s *seen) error {
	chat, generation := s.facts.Chat, s.facts.Chat.Status.Generation
	var pod corev1.Pod
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: chat.Namespace, Name: generation.Pod}, &pod)
	if apierrors.IsNotFound(err) {
		// A pod that this process has just created may not be in the cache yet; its event wakes the chat.
		s.facts.PodLost = !r.Ledger.JustCreated(chat.Namespace, generation.Pod, s.facts.Now)
		s.facts.PodStarting = "just created"
		if s.facts.PodLost {
			r.Ledger.Forget(chat.Namespace, generation.Pod)
		}
		s.lookAgain = placement.MaxUnseen
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading pod %s: %w", generation.Pod, err)
	}
	state := podstate.Of(&pod, s.facts.Now)
	age := s.facts.Now.Sub(generation.StartedAt.Time)
	s.facts.PodLost = state.Lost || age > attemptDeadline
	s.facts.PodStarting = state.Starting
	s.lookAgain = attemptDeadline - age
	if state.LostIn > 0 {
		s.lookAgain = state.LostIn
	}
	if state.Starting != "" { // Its event may come before the cache shows which chats it has.
		s.lookAgain = min(s.lookAgain, placement.MaxUnseen)
	}
	return nil
}

// choosePod gives the attempt a pod: one that is there and has room, else a new one.
func (r *Reconciler) choosePod(ctx context.Context, s *seen, plan *turn.Plan) (string, error) {
	chat := s.facts.Chat
	settings := r.Pods
	settings.Namespace = chat.Namespace
	settings.Keys = podspec.KeysOf(s.configs)
	prefer, err := r.podWithHistory(ctx, s)
	if err != nil {
		return "", err
	}
	want := placement.Want{Template: settings.Hash(), After: plan.PodAfter, Prefer: prefer, Capacity: r.PodCapacity}
	// One pod at a time is created in a namespace: chats that come together share it.
	unlock := r.access.lock(chat.Namespace)
	defer unlock()
	pods, err := r.podsIn(ctx, chat.Namespace, s.facts.Now)
	if err != nil {
		return "", err
	}
	if name, ok := r.Ledger.Choose(chat.Namespace, pods, want, keyOf(chat).String()); ok {
		return name, nil
	}
	return r.createPod(ctx, settings, keyOf(chat).String())
}

// podWithHistory is the pod that has the chat's history at hand: the one that wrote its newest message, or has just been
// lost and then is none.
func (r *Reconciler) podWithHistory(ctx context.Context, s *seen) (string, error) {
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

func (r *Reconciler) podsIn(ctx context.Context, namespace string, now time.Time) ([]placement.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration})
	if err != nil {
		return nil, fmt.Errorf("listing generation pods: %w", err)
	}
	pods := make([]placement.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, podstate.Placement(&list.Items[i], now))
	}
	return pods, nil
}

func (r *Reconciler) createPod(ctx context.Context, settings podspec.Settings, chat string) (string, error) {
	if err := r.access.ensure(ctx, r.Client, r.Live, settings.Namespace, r.GatewayNamespace); err != nil {
		return "", err
	}
	pod := podspec.Generation(settings, "parley-generation-"+rand.String(6))
	if err := r.Client.Create(ctx, pod); err != nil {
		r.access.forget(settings.Namespace)
		return "", fmt.Errorf("creating a generation pod in namespace %s: %w", settings.Namespace, err)
	}
	r.Ledger.Created(settings.Namespace, placement.Pod{
		Name: pod.Name, Template: settings.Hash(), Created: r.Now(), Usable: true,
	}, chat)
	return pod.Name, nil
}
