// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1alpha1"
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
	informer := cache.NewSharedIndexInformer(w.parley.Messages(w.ns).ListerWatcher(""), &v1alpha1.ChatMessage{}, 0, nil)
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
	m, ok := o.(*v1alpha1.ChatMessage)
	if !ok || m.Spec.Generation != nil || !isSettled(m) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.done[m.Name]; known {
		return
	}
	l.done[m.Name] = time.Now()
	l.open[m.Spec.ChatRef.Name]--
	close(l.bell)
	l.bell = make(chan struct{})
}

// isSettled reports whether the message's turn has ended, well or badly. After a failure the next message continues, as
// a person would; that it failed is found in the end.
func isSettled(m *v1alpha1.ChatMessage) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
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
