// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
)

// NoteEdit takes the message down if it was edited since its commit and none before it was.
func (f *Facts) NoteEdit(m *v1beta1.ChatMessage, commit *v1beta1.CommittedMessage) {
	if m.Spec.IsNote() || !m.DeletionTimestamp.IsZero() { // What has a note's name was deleted, which says more.
		return
	}
	edited := &Edited{Message: MessageOf(m), Commit: *commit}
	if commit.ContentHash != edited.ContentHash && (f.Edited == nil || commit.Position < f.Edited.Commit.Position) {
		f.Edited = edited
	}
}

// CommitOf is the commit of a message of a person or a client, as far as the chat or the message itself says it; nil if
// they say nothing of one.
func CommitOf(chat *v1beta1.Chat, m *v1beta1.ChatMessage) *v1beta1.CommittedMessage {
	if commit := history.RecordedBy(chat, m.Name); commit != nil && history.Is(commit, m) {
		return commit
	}
	n := history.NodeOf(m)
	if m.Status.ChatUID != string(chat.UID) || n.Index >= chat.Status.History.Length || !history.MayHold(chat, m) {
		return nil
	}
	return n.Commit
}

// IsOpen reports whether a User message is neither in the history nor in the queue,
// nor of an earlier chat of this name. A note never is: it gets no answer.
func IsOpen(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	switch {
	case !m.DeletionTimestamp.IsZero(), m.Status.State == v1beta1.MessageCommitted, m.Spec.IsNote():
		return false
	case history.IsRefused(m):
		return false
	}
	if uid := history.ChatUID(m); uid != "" && uid != string(chat.UID) {
		return false
	}
	if commit := history.RecordedBy(chat, m.Name); commit != nil && history.Is(commit, m) {
		return false
	}
	return !slices.ContainsFunc(chat.Status.Queue, func(q v1beta1.QueuedMessage) bool { return q.Name == m.Name })
}

// TakeOrder is the order in which User messages are taken up: the chat's prompt first, then as they were created.
func TakeOrder(chat *v1beta1.Chat, a, b *v1beta1.ChatMessage) int {
	if prompt := PromptName(chat); a.Name == prompt || b.Name == prompt {
		if a.Name == prompt {
			return -1
		}
		return 1
	}
	return ByCreation(a, b, createdVersion(a), createdVersion(b))
}

// ByCreation orders objects as they were created. Their timestamps have whole seconds; the resourceVersions that they
// were created with, which count the writes of one store, tell the rest.
func ByCreation(a, b metav1.Object, versionA, versionB string) int {
	first, second := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !first.Equal(&second) {
		return first.Compare(second.Time)
	}
	if order, err := resourceversion.CompareResourceVersion(versionA, versionB); err == nil && order != 0 {
		return order
	}
	return strings.Compare(a.GetName(), b.GetName())
}

// createdVersion is the resourceVersion that a message was created with: its own, unless its status has been written
// since and keeps it. If people have written to it in between,
// it comes behind those of the same second that they have not.
func createdVersion(m *v1beta1.ChatMessage) string {
	if m.Status.CreatedVersion != "" {
		return m.Status.CreatedVersion
	}
	return m.ResourceVersion
}
