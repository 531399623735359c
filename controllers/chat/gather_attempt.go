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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/podstate"
)

// readAttempt reads the result of the attempt under way, and how its pod is.
func (r *Reconciler) readAttempt(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	if chat.Status.Generation == nil {
		return nil
	}
	result, err := r.message(ctx, r.Client, chat.Namespace, attempts.Of(chat.UID, &chat.Status).ResultName(chat.Name))
	if err != nil {
		return err
	}
	s.facts.Result, s.facts.Deleted = result, r.deleted.newest(keyOf(chat))
	return r.readPod(ctx, s)
}

// attemptDeadline is the age at which an attempt counts as lost whatever its pod says: a day. A generator that answers
// its probes is trusted to be at work: it ends calls that are silent for too long, and its probe fails when it hangs.
// What is left to bound is a provider that never stops sending something.
const attemptDeadline = 24 * time.Hour

// readPod finds out whether the pod of the attempt can still answer.
func (r *Reconciler) readPod(ctx context.Context, s *scope) error {
	chat, generation := s.facts.Chat, s.facts.Chat.Status.Generation
	pod, err := r.generationPod(ctx, types.NamespacedName{Namespace: chat.Namespace, Name: generation.Pod})
	if err != nil {
		return err
	}
	if pod == nil {
		// A pod that this process has just created may not be in the cache yet; its event wakes the chat.
		s.facts.PodLost = !r.Ledger.JustCreated(chat.Namespace, generation.Pod, s.facts.Now)
		s.facts.PodStarting = "just created"
		s.podGone = s.facts.PodLost
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

// generationPod reads a generation pod; nil if there is none. That the cache does not show it does not prove that it is
// gone: another manager may have created it a moment ago, and the caches of chats and pods do not keep pace.
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
func (r *Reconciler) settingsOf(s *scope) podspec.Settings {
	settings := r.Pods
	settings.Namespace = s.facts.Chat.Namespace
	settings.Keys = podspec.KeysOf(s.configs)
	return settings
}

// termsOf is what the pods of the chat's namespace are measured by.
func (r *Reconciler) termsOf(s *scope) podstate.Terms {
	return podstate.Terms{Start: r.PodStart, Template: r.settingsOf(s).Hash()}
}

// readSummary reads what a model says of the turn that has just ended,
// or is about to end with the result that was found.
func (r *Reconciler) readSummary(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	if t := chat.Status.Turn; t == nil || t.SummarySource != v1alpha1.TurnSummaryFromState {
		return nil
	}
	version := chat.Status.History.Version
	switch {
	case s.facts.Result != nil:
		version++
	case chat.Status.Phase != v1alpha1.ChatWaiting:
		return nil
	}
	summary, err := r.generated(ctx, chat.Namespace, fence.SummaryName(chat.Name, version))
	if err != nil || summary == nil {
		return err
	}
	s.facts.Summary = summary
	head, err := r.generated(ctx, chat.Namespace, chat.Status.History.Head)
	// An older one is left where the reply was cut off.
	if head != nil && head.Spec.Generation.HistoryVersion == version-1 {
		s.facts.HeadPod = head.Spec.Generation.Pod
	}
	return err
}

// generated reads a generated message; nil if there is none.
func (r *Reconciler) generated(ctx context.Context, namespace, name string) (*v1alpha1.ChatMessage, error) {
	m, err := r.message(ctx, r.Client, namespace, name)
	if err != nil || m == nil || m.Spec.Generation == nil {
		return nil, err
	}
	return m, nil
}
