// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// RefOf is what the chat says of its history, of which Walk is to read all.
func RefOf(chat *v1beta1.Chat) Ref {
	ref := Ref{Head: chat.Status.History.Head, Length: chat.Status.History.Length}
	if turn := commitOfTurn(chat); turn != nil { // The reply behind it may have been deleted.
		ref.Tail = append(ref.Tail, *turn)
	}
	ref.Tail = append(ref.Tail, chat.Status.Internal.Tail...)
	return ref
}

// NewestGenerated is the name of the newest generated message of the history; empty if there is none.
func NewestGenerated(chat *v1beta1.Chat) string {
	if tail := chat.Status.Internal.Tail; len(tail) > 0 {
		return tail[0].Parent
	}
	return chat.Status.History.Head
}

// NodeOf is the message where it says that it stands itself. A note stands nowhere in a history, only beside one.
func NodeOf(m *v1beta1.ChatMessage) Node {
	n := Node{Name: m.Name, UID: string(m.UID), Parent: m.Status.Parent, Version: m.Status.HistoryVersion}
	switch g, st := m.Spec.Generation, &m.Status; {
	case m.Spec.IsNote():
		return Node{Name: n.Name, UID: n.UID}
	case g != nil:
		n.Parent, n.Version, n.Follows = m.Spec.Parent, g.HistoryVersion+1, m.Spec.Follows
		if m.Spec.Index != nil {
			n.Placed, n.Index = true, *m.Spec.Index
		}
	case st.State == v1beta1.MessageCommitted && st.Index != nil:
		// That may be all that is left of its commit: the reply that recorded it may have been deleted.
		return n.at(&v1beta1.CommittedMessage{Message: m.Name, UID: n.UID, Parent: st.Parent, Position: *st.Index,
			HistoryVersion: st.HistoryVersion, ContentHash: st.ContentHash, StoppedBy: st.StoppedBy,
			CallsCanceledReasonBefore: st.CallsCanceledReasonBefore})
	}
	return n
}

// RecordedBy is the commit of the message of that name that the chat's own status records; nil if it says nothing of
// it. It does of all behind the newest generated message, and of the message that began the newest turn.
func RecordedBy(chat *v1beta1.Chat, name string) *v1beta1.CommittedMessage {
	for i := range chat.Status.Internal.Tail {
		if commit := &chat.Status.Internal.Tail[i]; commit.Message == name {
			return commit
		}
	}
	if turn := commitOfTurn(chat); turn != nil && turn.Message == name && name != "" {
		return turn
	}
	return nil
}

// commitOfTurn is the commit of the message that began the newest turn, but for how the turn before ended; nil without
// a turn.
func commitOfTurn(chat *v1beta1.Chat) *v1beta1.CommittedMessage {
	t, in := chat.Status.Turn, &chat.Status.Internal.Turn
	if t == nil {
		return nil
	}
	return &v1beta1.CommittedMessage{Message: t.Message, UID: in.MessageUID, Parent: t.Parent, Position: t.Index,
		HistoryVersion: t.HistoryVersion, ContentHash: in.ContentHash,
		CallsCanceledReasonBefore: in.CallsCanceledReasonBefore}
}

// Of is the message where it stands, by the chat's word or else by its own, which may be late.
func Of(chat *v1beta1.Chat, m *v1beta1.ChatMessage) Node {
	if commit := recorded(chat, m); commit != nil {
		return NodeOf(m).at(commit)
	}
	return NodeOf(m)
}

// recorded is the commit of the message that the chat's own status records; nil if it says nothing of it.
func recorded(chat *v1beta1.Chat, m *v1beta1.ChatMessage) *v1beta1.CommittedMessage {
	if commit := RecordedBy(chat, m.Name); commit != nil && Is(commit, m) {
		return commit
	}
	return nil
}

// Is reports whether the commit is of that message, and not of an earlier one of its name.
func Is(commit *v1beta1.CommittedMessage, m *v1beta1.ChatMessage) bool {
	return commit.Message == m.Name && (commit.UID == "" || commit.UID == string(m.UID))
}

// Waits reports whether the chat has not started the message. The state of the message is some seconds old.
func Waits(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	if commit := RecordedBy(chat, m.Name); commit != nil && Is(commit, m) {
		return false
	}
	return slices.Contains([]v1beta1.MessageState{"", v1beta1.MessagePending, v1beta1.MessageQueued}, m.Status.State)
}

// Follows reports whether the generated message of the chat follows the message, with nothing generated in between.
func Follows(chat *v1beta1.Chat, generated, m *v1beta1.ChatMessage) bool {
	if g := generated.Spec.Generation; g == nil || g.ChatUID != string(chat.UID) {
		return false
	}
	for i := range generated.Spec.Follows {
		if commit := &generated.Spec.Follows[i]; commit.Message == m.Name {
			return Is(commit, m)
		}
	}
	return generated.Spec.Parent == m.Name
}

// Nodes are those of the messages of a chat that may be part of its history, each where it stands by its own word.
func Nodes(chat *v1beta1.Chat, messages []v1beta1.ChatMessage) (nodes []Node) {
	for i := range messages {
		if n := NodeOf(&messages[i]); mayHold(chat, &messages[i]) && !hasLeft(chat, n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Left are the messages of a chat that were part of the end of its history which was cut off, and have yet to be put
// aside: those of people and clients first, since the generated ones say of them that they were.
func Left(chat *v1beta1.Chat, messages []v1beta1.ChatMessage) (left []*v1beta1.ChatMessage) {
	var generated, others []*v1beta1.ChatMessage
	known, kept := commits{}, map[string]bool{}
	chain, _ := Whole(RefOf(chat), Nodes(chat, messages))
	for _, n := range chain {
		kept[n.Name] = true
	}
	for i := range messages {
		switch m := &messages[i]; {
		case kept[m.Name] || !mayHold(chat, m):
		case m.Spec.Generation == nil:
			others = append(others, m)
		case hasLeft(chat, NodeOf(m)):
			generated = append(generated, m)
			known.note(m.Spec.Follows)
		}
	}
	known.note(chat.Status.Internal.Tail)
	for _, m := range others {
		if hasLeft(chat, known.place(NodeOf(m))) {
			left = append(left, m)
		}
	}
	return append(left, generated...)
}

// ChatUID is the UID of the chat that the message was generated for, that has taken it up, or that controls it, such as
// a chat its prompt; empty if there is none yet.
func ChatUID(m *v1beta1.ChatMessage) string {
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
func MayHold(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	if !mayHold(chat, m) {
		return false
	}
	return recorded(chat, m) != nil || !hasLeft(chat, NodeOf(m)) &&
		(m.Spec.Generation != nil || m.Status.State == v1beta1.MessageCommitted)
}

// mayHold reports whether nothing that the message says itself speaks against it.
func mayHold(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	if uid := ChatUID(m); m.Spec.IsNote() || uid != "" && uid != string(chat.UID) || !m.DeletionTimestamp.IsZero() {
		return false
	}
	if g := m.Spec.Generation; g != nil {
		return g.Outcome == v1beta1.OutcomeCompleted || g.Outcome == v1beta1.OutcomeInterrupted
	}
	return recorded(chat, m) != nil || !IsRefused(m)
}

// IsRefused reports whether the message was rejected or superseded, and has not been changed since. A change makes it
// open again.
func IsRefused(m *v1beta1.ChatMessage) bool {
	switch m.Status.State {
	case v1beta1.MessageRejected, v1beta1.MessageSuperseded:
		return m.Status.ObservedGeneration == m.Generation
	}
	return false
}

// hasLeft reports whether the place is at the end of the history that was cut off.
func hasLeft(chat *v1beta1.Chat, n Node) bool {
	cut := chat.Status.Internal.Superseded
	return cut != nil && n.Placed && n.Index >= cut.FromIndex && n.Version < cut.BeforeVersion
}
