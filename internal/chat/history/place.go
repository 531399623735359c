// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// RefOf is what the chat says of its history, of which Walk is to read all.
func RefOf(chat *v1alpha1.Chat) Ref {
	ref := Ref{Head: chat.Status.History.Head, Length: chat.Status.History.Length}
	if p := chat.Status.Internal.PreviousTurn; p != nil {
		ref.Previous = Turn{Message: p.Message, Parent: p.Parent, Index: p.Index, Version: p.HistoryVersion}
	}
	t := chat.Status.Turn
	if t == nil {
		return ref
	}
	ref.Turn = Turn{Message: t.Message, Parent: t.Parent, Index: t.Index, Version: t.HistoryVersion}
	if r := chat.Status.Internal.Turn.Results; r != nil {
		ref.Results = Turn{Message: r.Message, Parent: r.Parent, Index: r.Index, Version: r.HistoryVersion}
	}
	return ref
}

// NodeOf is the message where it says that it stands itself. A note stands nowhere in a history, only beside one.
func NodeOf(m *v1alpha1.ChatMessage) Node {
	if m.Spec.IsNote() {
		return Node{Name: m.Name}
	}
	n := Node{Name: m.Name, Parent: m.Status.Parent, Version: m.Status.HistoryVersion}
	index := m.Status.Index
	if g := m.Spec.Generation; g != nil {
		n.Parent, n.Version, index = m.Spec.Parent, g.HistoryVersion+1, m.Spec.Index
	}
	if index != nil {
		n.Placed, n.Index = true, *index
	}
	return n
}

// RecordedBy is the message of that name where the chat's own status says that it stands; false if it says nothing of
// it. It does of the message that began the newest turn, of the newest results of a client, and of the message of the
// turn before, until these do themselves.
func RecordedBy(chat *v1alpha1.Chat, name string) (Node, bool) {
	n := RefOf(chat).place(Node{Name: name})
	return n, n.Placed
}

// Of is the message where it stands, by the chat's word or else by its own.
func Of(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) Node { return RefOf(chat).place(NodeOf(m)) }

// ChatUID is the UID of the chat that the message was generated for, that has taken it up, or that controls it, such as
// a chat its prompt; empty if there is none yet.
func ChatUID(m *v1alpha1.ChatMessage) string {
	if m.Spec.Generation != nil {
		return m.Spec.Generation.ChatUID
	}
	if m.Status.ChatUID != "" {
		return m.Status.ChatUID
	}
	if o := metav1.GetControllerOf(m); o != nil && o.Kind == "Chat" && o.Name == m.Spec.ChatRef.Name {
		return string(o.UID)
	}
	return ""
}

// MayHold reports whether the message may be part of the chat's history, as it says itself and the chat's status does.
// Whether it is, only the chain tells. A note never is, also under the name of a message that was.
func MayHold(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	if m.Spec.IsNote() {
		return false
	}
	if uid := ChatUID(m); uid != "" && uid != string(chat.UID) || !m.DeletionTimestamp.IsZero() || HasLeft(chat, m) {
		return false
	}
	if g := m.Spec.Generation; g != nil {
		return g.Outcome == v1alpha1.OutcomeCompleted || g.Outcome == v1alpha1.OutcomeInterrupted
	}
	_, recorded := RecordedBy(chat, m.Name)
	return recorded || m.Status.State == v1alpha1.MessageCommitted
}

// HasLeft reports whether the message was part of the end of the history that was cut off, and has yet to be put aside.
func HasLeft(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	cut := chat.Status.Internal.Superseded
	if cut == nil || ChatUID(m) != string(chat.UID) {
		return false
	}
	if m.Spec.Generation == nil {
		if _, recorded := RecordedBy(chat, m.Name); recorded || m.Status.State != v1alpha1.MessageCommitted {
			return false
		}
	}
	n := NodeOf(m)
	return n.Placed && n.Index >= cut.FromIndex && n.Version < cut.BeforeVersion
}
