// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chat/tree"
)

// member is a chat of the backup, with all that is restored with it.
type member struct {
	chat      *v1beta1.Chat
	parent    *member
	messages  []*v1beta1.ChatMessage
	approvals []*v1beta1.ToolApproval
	// committed names the messages of the history.
	committed map[string]bool
	// err is why the chat is not restored; nil if it is.
	err error

	// live is the Chat in the cluster, and liveMessages those messages of people and clients, by name.
	live         *v1beta1.Chat
	liveMessages map[string]*v1beta1.ChatMessage
}

// families are the chats of the backup by families, each with its root first and parents before their sub-chats.
func (b *Backup) families(names []string) ([][]*member, error) {
	spaces, missing := map[string][]v1beta1.Chat{}, map[string]bool{}
	for _, name := range names {
		missing[name] = true
	}
	for i := range b.Chats {
		spaces[b.Chats[i].Namespace] = append(spaces[b.Chats[i].Namespace], b.Chats[i])
	}
	all, contents := [][]*member{}, b.contents()
	for _, namespace := range slices.Sorted(maps.Keys(spaces)) {
		for _, family := range familiesOf(spaces[namespace]) {
			isSelected := len(names) == 0
			for _, m := range family {
				isSelected = isSelected || slices.Contains(names, m.chat.Name)
				delete(missing, m.chat.Name)
				contents.addTo(m)
				m.verify()
			}
			if isSelected {
				all = append(all, family)
			}
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the backup has no chat %s", slices.Sorted(maps.Keys(missing))[0])
	}
	return all, nil
}

// familiesOf sorts the chats of a namespace. A chat whose ancestors are incomplete is a family of its own.
func familiesOf(chats []v1beta1.Chat) (families [][]*member) {
	slices.SortFunc(chats, func(a, b v1beta1.Chat) int { return cmp.Compare(a.Name, b.Name) })
	relations := tree.Of(chats)
	for i := range chats {
		switch above, complete := relations.Ancestors(&chats[i]); {
		case !complete:
			families = append(families, familyOf([]*v1beta1.Chat{&chats[i]}))
		case len(above) == 0:
			families = append(families, familyOf(append([]*v1beta1.Chat{&chats[i]}, relations.Descendants(&chats[i])...)))
		}
	}
	return families
}

func familyOf(chats []*v1beta1.Chat) (family []*member) {
	byName := map[string]*member{}
	for _, chat := range chats {
		m := &member{chat: chat, liveMessages: map[string]*v1beta1.ChatMessage{}}
		if chat.Spec.ParentRef != nil {
			m.parent = byName[chat.Spec.ParentRef.Name]
		}
		byName[chat.Name] = m
		family = append(family, m)
	}
	return family
}

// contents are the messages and approvals of the backup by their chats.
type contents struct {
	messages  map[types.NamespacedName][]v1beta1.ChatMessage
	approvals map[types.NamespacedName][]*v1beta1.ToolApproval
}

func (b *Backup) contents() contents {
	c := contents{map[types.NamespacedName][]v1beta1.ChatMessage{}, map[types.NamespacedName][]*v1beta1.ToolApproval{}}
	for i := range b.Messages {
		m := &b.Messages[i]
		key := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ChatRef.Name}
		c.messages[key] = append(c.messages[key], *m)
	}
	for i := range b.Approvals {
		a := &b.Approvals[i]
		key := types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.ChatRef.Name}
		c.approvals[key] = append(c.approvals[key], a)
	}
	return c
}

// addTo adds what is restored with the chat, in the order of creation. A generated message comes after those that it
// follows. Messages of an earlier chat of the name, and results that the chat will not commit, are left out.
func (c *contents) addTo(m *member) {
	key := types.NamespacedName{Namespace: m.chat.Namespace, Name: m.chat.Name}
	all := c.messages[key]
	m.walk(all)
	kept := generatedMessages(m.chat, all)
	for i := range all {
		uid := history.ChatUID(&all[i])
		isOwn := uid == "" || uid == string(m.chat.UID)
		isKept := all[i].Spec.Generation == nil || m.committed[all[i].Name] || kept[all[i].Name]
		if isOwn && isKept && all[i].DeletionTimestamp.IsZero() {
			m.messages = append(m.messages, &all[i])
		}
	}
	slices.SortFunc(m.messages, func(a, b *v1beta1.ChatMessage) int { return inOrder(m.chat, a, b) })
	m.approvals = c.approvals[key]
	slices.SortFunc(m.approvals, func(a, b *v1beta1.ToolApproval) int {
		return plan.ByCreation(a, b, a.ResourceVersion, b.ResourceVersion)
	})
}

// generatedMessages names the generated messages that the chat needs in addition to its history: those that left it and
// that the operator has yet to remove, and the result of the attempt under way.
func generatedMessages(chat *v1beta1.Chat, all []v1beta1.ChatMessage) map[string]bool {
	kept := map[string]bool{}
	for _, left := range history.Left(chat, all) {
		kept[left.Name] = true
	}
	for i := range all {
		if attempts.AnswersCurrentAttempt(chat, &chat.Status, &all[i]) {
			kept[all[i].Name] = true
		}
	}
	return kept
}

// hasStatus reports whether the status of a message of a person or a client is restored. One that the chat committed
// after it was read for the backup is open.
func (m *member) hasStatus(old *v1beta1.ChatMessage) bool {
	if old.Status.State == v1beta1.MessageCommitted {
		return m.committed[old.Name] || m.chat.Status.Internal.Superseded != nil
	}
	return old.Status.State != ""
}

// hasApplied reports whether the status of an approval is restored. A decision about a call that waits is open, unless
// the chat has recorded it.
func (m *member) hasApplied(old *v1beta1.ToolApproval) bool {
	required := m.chat.Status.RequiresAction
	isPending := required != nil && slices.ContainsFunc(required.ToolCalls, func(c v1beta1.PendingToolCall) bool {
		return c.ID == old.Spec.ToolCallID
	})
	return len(old.Status.Conditions) > 0 && (!isPending || plan.Recorded(m.chat, old))
}

func inOrder(chat *v1beta1.Chat, a, b *v1beta1.ChatMessage) int {
	switch g, h := a.Spec.Generation, b.Spec.Generation; {
	case g == nil && h == nil:
		return plan.TakeOrder(chat, a, b)
	case g == nil:
		return -1
	case h == nil:
		return 1
	default:
		return cmp.Or(cmp.Compare(g.HistoryVersion, h.HistoryVersion), cmp.Compare(g.Attempt, h.Attempt))
	}
}

// walk notes the messages of the history, or that some are missing.
func (m *member) walk(all []v1beta1.ChatMessage) {
	nodes := map[string]history.Node{}
	for _, n := range history.Nodes(m.chat, all) {
		nodes[n.Name] = n
	}
	lookup := func(name string) (history.Node, bool) { n, ok := nodes[name]; return n, ok }
	chain, err := history.Walk(history.RefOf(m.chat), lookup, nil)
	if err != nil {
		m.err = leftOutError("the backup is incomplete: " + err.Error())
	}
	m.committed = map[string]bool{}
	for _, n := range chain {
		m.committed[n.Name] = true
	}
}

// verify finds out whether the chat can be restored, if its history is complete.
func (m *member) verify() {
	switch {
	case m.chat.Spec.ParentRef != nil && m.parent == nil:
		m.err = leftOutError("the backup lacks chat " + m.chat.Spec.ParentRef.Name + ", which is above it, or one above that")
	case !m.chat.DeletionTimestamp.IsZero():
		m.err = leftOutError("it was being deleted when the backup was made")
	case m.chat.IsRestoring():
		m.err = leftOutError("it was being restored when the backup was made")
	}
}
