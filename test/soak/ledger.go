// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
)

// ledger is what was asked, and when its turn was seen to have ended.
type ledger struct {
	mu    sync.Mutex
	asked []*question
	// open is how many questions of each chat wait for their answers.
	open map[string]int
	// done is when the turn of each question, by the name of its message, was seen to have ended.
	done map[string]time.Time
	bell chan struct{}
}

// watch begins to note answers, until ctx is done.
func (w *world) watch(ctx context.Context) (*ledger, error) {
	l := &ledger{open: map[string]int{}, done: map[string]time.Time{}, bell: make(chan struct{})}
	informer := cache.NewSharedIndexInformer(w.parley.Messages(w.ns).ListerWatcher(""), &v1beta1.ChatMessage{}, 0, nil)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: l.see,
		UpdateFunc: func(_, o any) { l.see(o) }}); err != nil {
		return nil, fmt.Errorf("watching messages: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		return nil, ctx.Err()
	}
	return l, nil
}

func (l *ledger) see(o any) {
	m, ok := o.(*v1beta1.ChatMessage)
	if !ok || m.Spec.Generation != nil || !isSettled(m) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, asked := l.open[m.Spec.ChatRef.Name] // Sub-chats are not.
	if _, known := l.done[m.Name]; known || !asked {
		return
	}
	l.done[m.Name] = time.Now()
	l.open[m.Spec.ChatRef.Name]--
	close(l.bell)
	l.bell = make(chan struct{})
}

// isSettled reports whether the message's turn has ended, well or badly. After a failure the next message continues, as
// a person would; that it failed is found in the end.
func isSettled(m *v1beta1.ChatMessage) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionUnknown
}

func (l *ledger) ask(q *question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, q)
	l.open[q.chat]++
}

// all questions, in the order in which they were asked.
func (l *ledger) all() []*question {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.asked)
}

// answered is how many questions have had their turn.
func (l *ledger) answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.done)
}

// took is how long the answer to the question took; 0 if it was not seen.
func (l *ledger) took(q *question) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done, ok := l.done[q.name]; ok {
		return done.Sub(q.sent)
	}
	return 0
}

// oldest is the first open question of those that were sent before, and how many chats have one; nil if there is none.
// Of the questions of one chat only the first counts: the others wait for it.
func (l *ledger) oldest(before time.Time) (first *question, chats int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[string]bool{}
	for _, q := range l.asked {
		if _, done := l.done[q.name]; done || seen[q.chat] {
			continue
		}
		seen[q.chat] = true
		if !q.sent.Before(before) {
			continue
		}
		chats++
		if first == nil || q.sent.Before(first.sent) {
			first = q
		}
	}
	return first, chats
}

// wait until no more than so many questions of the chat are open.
func (l *ledger) wait(ctx context.Context, chat string, most int) {
	for {
		l.mu.Lock()
		open, bell := l.open[chat], l.bell
		l.mu.Unlock()
		if open <= most {
			return
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return
		}
	}
}

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
	var chat v1beta1.Chat
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: q.chat}, &chat); err != nil {
		return "", fmt.Errorf("looking at chat %s: %w", q.chat, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", chat.Status.Phase, readyOf(chat.Status.Conditions))
	if t := chat.Status.Turn; t != nil && chat.Status.Phase != v1beta1.ChatWaiting {
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
