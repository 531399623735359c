// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
)

// deleted remembers of each chat the newest result that was deleted, since an attempt whose result went before it was
// committed has no other. Losing it is harmless: the attempt is lost when its time is over.
type deleted struct {
	mu      sync.Mutex
	results map[types.NamespacedName]*v1beta1.ChatMessage
}

// put remembers a message that was deleted, if it was a result: its name and what it answers, not what it says.
func (d *deleted) put(m *v1beta1.ChatMessage) {
	g := m.Spec.Generation
	if g == nil || m.Name != attempts.Answered(m).ResultName(m.Spec.ChatRef.Name) {
		return
	}
	result := &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name},
		Spec: v1beta1.ChatMessageSpec{
			ChatRef: m.Spec.ChatRef, Parent: m.Spec.Parent,
			Generation: &v1beta1.MessageGeneration{ChatUID: g.ChatUID, HistoryVersion: g.HistoryVersion, Attempt: g.Attempt,
				Pod: g.Pod, Action: g.Action},
		}}
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ChatRef.Name}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.results == nil {
		d.results = map[types.NamespacedName]*v1beta1.ChatMessage{}
	}
	if before := d.results[key]; before == nil || !attempts.Answered(m).Before(attempts.Answered(before)) {
		d.results[key] = result
	}
}

// newest is the result of the chat that was deleted; nil if none was.
func (d *deleted) newest(key types.NamespacedName) *v1beta1.ChatMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.results[key]
}

// forget drops a chat that is gone.
func (d *deleted) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.results, key)
}
