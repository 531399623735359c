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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/podstate"
)

// attemptDeadline is the age at which an attempt counts as lost whatever its pod says: a day. A generator that answers its probes is
// trusted to be at work: it ends calls that are silent for too long, and its probe fails when it hangs. What is left to bound is a
// provider that goes on sending something for ever.
const attemptDeadline = 24 * time.Hour

// readPod finds out whether the pod of the attempt can still answer.
func (r *Reconciler) readPod(ctx context.Context, s *seen) error {
	chat, generation := s.facts.Chat, s.facts.Chat.Status.Generation
	pod, err := r.generationPod(ctx, types.NamespacedName{Namespace: chat.Namespace, Name: generation.Pod})
	if err != nil {
		return err
	}
	if pod == nil {
		// A pod that this process has just created may not be in the cache yet; its event wakes the chat.
		s.facts.PodLost = !r.Ledger.JustCreated(chat.Namespace, generation.Pod, s.facts.Now)
		s.facts.PodStarting = "just created"
		if s.facts.PodLost {
			r.Ledger.Forget(chat.Namespace, generation.Pod)
		}
		s.lookAgain = placement.MaxUnseen
		return nil
	}
	state := podstate.Of(pod, s.facts.Now, r.termsOf(s))
	age := s.facts.Now.Sub(generation.StartedAt.Time)
	s.facts.PodLost, s.facts.PodLostBy = state.Lost || age > attemptDeadline, state.By
	if age > attemptDeadline && !state.Lost {
		s.facts.PodLostBy = "it was given the attempt more than a day ago"
	}
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

// generationPod reads a generation pod; nil if there is none. That the cache does not show it does not prove that it is gone: another
// manager may have created it a moment ago, and the caches of chats and pods do not keep pace.
func (r *Reconciler) generationPod(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := r.Client.Get(ctx, key, &pod)
	if apierrors.IsNotFound(err) && !r.Ledger.JustCreated(key.Namespace, key.Name, r.Now()) {
		err = r.Live.Get(ctx, key, &pod)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", key.Name, err)
	}
	return &pod, nil
}

// settingsOf is what the chat's namespace builds its generation pods from.
func (r *Reconciler) settingsOf(s *seen) podspec.Settings {
	settings := r.Pods
	settings.Namespace = s.facts.Chat.Namespace
	settings.Keys = podspec.KeysOf(s.configs)
	return settings
}

// termsOf is what the pods of the chat's namespace are measured by.
func (r *Reconciler) termsOf(s *seen) podstate.Terms {
	return podstate.Terms{Start: r.PodStart, Template: r.settingsOf(s).Hash()}
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

func (r *Reconciler) podsIn(ctx context.Context, s *seen) ([]placement.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(s.facts.Chat.Namespace), client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration})
	if err != nil {
		return nil, fmt.Errorf("listing generation pods: %w", err)
	}
	pods, terms := make([]placement.Pod, 0, len(list.Items)), r.termsOf(s)
	for i := range list.Items {
		pods = append(pods, podstate.Placement(&list.Items[i], s.facts.Now, terms))
	}
	return pods, nil
}
