// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

const (
	// patience is how long an answer takes at most when nothing is killed: a queue of long replies.
	patience = 20 * time.Second
	// lookEvery is how often the log says what those wait for that have waited longer.
	lookEvery = 5 * time.Second
)

// explain logs what the longest waiting question waits for, until ctx is done, so that a long wait can be understood.
func (w *world) explain(ctx context.Context, l *ledger) {
	for pause(ctx, lookEvery) {
		q, waiting := l.oldest(time.Now().Add(-patience))
		if q == nil {
			continue
		}
		looking, cancel := context.WithTimeout(ctx, lookEvery)
		says, err := w.describe(looking, q)
		cancel()
		if err != nil {
			says = err.Error()
		}
		w.log.Info("long waits", "chats", waiting, "such as", q.name, "for", time.Since(q.sent).Round(100*time.Millisecond),
			"because", says)
	}
}

func (w *world) describe(ctx context.Context, q *question) (string, error) {
	var chat v1alpha1.Chat
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: q.chat}, &chat); err != nil {
		return "", fmt.Errorf("looking at chat %s: %w", q.chat, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", chat.Status.Phase, readyOf(chat.Status.Conditions))
	if t := chat.Status.Turn; t != nil && chat.Status.Phase != v1alpha1.ChatWaiting {
		fmt.Fprintf(&b, "; turn of %s", t.Message)
	}
	g := chat.Status.Generation
	if g == nil || g.Pod == "" {
		return b.String(), nil
	}
	fmt.Fprintf(&b, "; attempt %d, begun %s, on %s", g.Attempt, g.StartedAt.UTC().Format("15:04:05"), g.Pod)
	var pod corev1.Pod
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: g.Pod}, &pod); err != nil {
		fmt.Fprintf(&b, ": %v", err)
		return b.String(), nil
	}
	fmt.Fprintf(&b, ": %s, ready %v, deleted %v", pod.Status.Phase, isReady(&pod), pod.DeletionTimestamp != nil)
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		fmt.Fprintf(&b, ", %s ready %v restarts %d", s.Name, s.Ready, s.RestartCount)
		if s.State.Waiting != nil {
			fmt.Fprintf(&b, " %s", s.State.Waiting.Reason)
		}
	}
	return b.String(), nil
}
