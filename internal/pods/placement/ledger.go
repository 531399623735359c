// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"sync"
	"time"
)

// Ledger records which chat has which pod. It is in memory only: a new process fills it while it reads the chats. Until
// then a pod may get a few chats more than its capacity.
type Ledger struct {
	mu       sync.Mutex
	podOf    map[string]string         // chat (namespace/name) -> pod
	load     map[string]int            // pod -> number of chats
	created  map[string]map[string]Pod // namespace -> pods that the cache may not show yet
	draining map[string]bool           // pods that get no further chats
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{
		podOf: map[string]string{}, load: map[string]int{},
		created: map[string]map[string]Pod{}, draining: map[string]bool{},
	}
}

// Choose picks a pod among those of the namespace and those just created there, and books the chat on it.
func (l *Ledger) Choose(namespace string, pods []Pod, want Want, chat string) Choice {
	l.mu.Lock()
	defer l.mu.Unlock()
	choice := choose(l.candidates(namespace, pods), want, func(pod string) int {
		if l.podOf[chat] == pod {
			return l.load[pod] - 1 // Without the chat's own place.
		}
		return l.load[pod]
	})
	if choice.Pod != "" {
		l.book(chat, choice.Pod)
	}
	return choice
}

func (l *Ledger) candidates(namespace string, pods []Pod) []Pod {
	all := make([]Pod, 0, len(pods)+1)
	for _, pod := range pods {
		delete(l.created[namespace], pod.Name)
		if !l.draining[pod.Name] {
			all = append(all, pod)
		}
	}
	for _, pod := range l.created[namespace] {
		all = append(all, pod)
	}
	return all
}

// Room is how many of the pods that Choose picks among have room for a chat.
func (l *Ledger) Room(namespace string, pods []Pod, want Want) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pod := range l.candidates(namespace, pods) {
		if pod.fits(want) && l.load[pod.Name] < want.Capacity {
			n++
		}
	}
	return n
}

// Created records a pod that was created, before a cache shows it, and books the chat on it; empty: none.
func (l *Ledger) Created(namespace string, pod Pod, chat string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.created[namespace] == nil {
		l.created[namespace] = map[string]Pod{}
	}
	l.created[namespace][pod.Name] = pod
	if chat != "" {
		l.book(chat, pod.Name)
	}
}

// MaxUnseen is how long a cache may take to show a pod that was created: 10 s. After that the pod is gone.
const MaxUnseen = 10 * time.Second

// JustCreated reports whether the pod was created by this process a moment ago and no cache has shown it yet.
func (l *Ledger) JustCreated(namespace, pod string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	created, ok := l.created[namespace][pod]
	return ok && now.Sub(created.Created) < MaxUnseen
}

// Seen records that a cache shows the pod.
func (l *Ledger) Seen(namespace, pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.created[namespace], pod)
}

// Book records that the chat has the pod; an empty pod records that it has none.
func (l *Ledger) Book(chat, pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book(chat, pod)
}

func (l *Ledger) book(chat, pod string) {
	if old, ok := l.podOf[chat]; ok {
		if l.load[old]--; l.load[old] == 0 {
			delete(l.load, old)
		}
		delete(l.podOf, chat)
	}
	if pod == "" {
		return
	}
	l.podOf[chat] = pod
	l.load[pod]++
}

// Load is the number of chats that the pod has.
func (l *Ledger) Load(pod string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load[pod]
}

// Drain closes a pod without chats to further chats, and reports whether it did: then the pod can be removed.
func (l *Ledger) Drain(pod string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.load[pod] > 0 {
		return false
	}
	l.draining[pod] = true
	return true
}

// Forget drops a pod that is gone.
func (l *Ledger) Forget(namespace, pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.draining, pod)
	delete(l.created[namespace], pod)
}
