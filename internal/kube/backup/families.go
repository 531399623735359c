// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	messages  []v1beta1.ChatMessage
	approvals []v1beta1.ToolApproval
	// backup identifies the backup of the family: an interrupted restore is not continued with another one.
	backup string
	// committed names the messages of the history.
	committed map[string]bool
	// err is why the chat is not restored; nil if it is.
	err error

	// live is the Chat in the cluster.
	live *v1beta1.Chat
}

// families are the chats of the backup by families, parents before their sub-chats: those with a chat of the names, or
// all if there are none.
func (b *Backup) families(names []string) (families [][]*member, err error) {
	spaces, members := map[string][]v1beta1.Chat{}, map[types.NamespacedName]*member{}
	for i := range b.Chats {
		chat := &b.Chats[i]
		spaces[chat.Namespace] = append(spaces[chat.Namespace], *chat)
		members[types.NamespacedName{Namespace: chat.Namespace, Name: chat.Name}] = &member{chat: chat}
	}
	b.distribute(members)
	for _, name := range names {
		if !slices.ContainsFunc(b.Chats, func(c v1beta1.Chat) bool { return c.Name == name }) {
			return nil, fmt.Errorf("the backup has no chat %s", name)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(spaces)) {
		relations := tree.Of(spaces[namespace])
		for i := range spaces[namespace] {
			family := familyOf(&spaces[namespace][i], relations, members)
			isNamed := func(m *member) bool { return len(names) == 0 || slices.Contains(names, m.chat.Name) }
			if slices.ContainsFunc(family, isNamed) {
				families = append(families, family)
			}
		}
	}
	return families, nil
}

// distribute gives messages and approvals to their chats.
func (b *Backup) distribute(members map[types.NamespacedName]*member) {
	for i := range b.Messages {
		message := &b.Messages[i]
		if m := members[types.NamespacedName{Namespace: message.Namespace, Name: message.Spec.ChatRef.Name}]; m != nil {
			m.messages = append(m.messages, *message)
		}
	}
	for i := range b.Approvals {
		approval := &b.Approvals[i]
		if m := members[types.NamespacedName{Namespace: approval.Namespace, Name: approval.Spec.ChatRef.Name}]; m != nil {
			m.approvals = append(m.approvals, *approval)
		}
	}
}

// familyOf is the family of a root; nil for a sub-chat. A chat whose ancestors are incomplete is a family of its own.
func familyOf(root *v1beta1.Chat, relations *tree.Family, members map[types.NamespacedName]*member) (family []*member) {
	above, complete := relations.Ancestors(root)
	if complete && len(above) > 0 {
		return nil
	}
	chats := []*v1beta1.Chat{root}
	if complete {
		chats = append(chats, relations.Descendants(root)...)
	}
	for _, chat := range chats {
		m := members[types.NamespacedName{Namespace: chat.Namespace, Name: chat.Name}]
		if complete && chat.Spec.ParentRef != nil {
			m.parent = members[types.NamespacedName{Namespace: chat.Namespace, Name: chat.Spec.ParentRef.Name}]
		}
		m.prepare()
		family = append(family, m)
	}
	identify(family)
	return family
}

// versionOf identifies what a backup has of an object. Its redaction in an archive changes only the annotation.
func versionOf(o metav1.Object) string {
	return string(o.GetUID()) + "/" + o.GetResourceVersion() + "/" + o.GetAnnotations()[v1beta1.AnnotationRedacted]
}

// identify notes in each member which version of each object of the family the backup has.
func identify(family []*member) {
	var versions []string
	add := func(o metav1.Object) { versions = append(versions, versionOf(o)) }
	for _, m := range family {
		add(m.chat)
		for i := range m.messages {
			add(&m.messages[i])
		}
		for i := range m.approvals {
			add(&m.approvals[i])
		}
	}
	slices.Sort(versions)
	sum := sha256.Sum256([]byte(strings.Join(versions, "\n")))
	for _, m := range family {
		m.backup = hex.EncodeToString(sum[:16])
	}
}

// prepare verifies the chat, and leaves of its messages what is restored, in the order of creation. A generated message
// comes after those that it follows.
func (m *member) prepare() {
	m.verify()
	kept := m.generatedMessages()
	m.messages = slices.DeleteFunc(m.messages, func(message v1beta1.ChatMessage) bool {
		uid := history.ChatUID(&message) // That of an earlier chat of the name, if it is not empty.
		return uid != "" && uid != string(m.chat.UID) || !message.DeletionTimestamp.IsZero() ||
			message.Spec.Generation != nil && !kept[message.Name] || plan.IsUnfinishedCopy(m.chat, &message)
	})
	slices.SortFunc(m.messages, func(a, b v1beta1.ChatMessage) int {
		return cmp.Or(cmp.Compare(builtOn(&a), builtOn(&b)), plan.TakeOrder(m.chat, &a, &b))
	})
	slices.SortFunc(m.approvals, func(a, b v1beta1.ToolApproval) int {
		return plan.ByCreation(&a, &b, a.ResourceVersion, b.ResourceVersion)
	})
}

// verify notes the messages of the history, and why the chat cannot be restored.
func (m *member) verify() {
	chain, missing := history.Whole(history.RefOf(m.chat), history.Nodes(m.chat, m.messages))
	m.committed = map[string]bool{}
	for _, n := range chain {
		m.committed[n.Name] = true
	}
	switch length := m.chat.Status.History.Length; {
	case m.chat.Spec.ParentRef != nil && m.parent == nil:
		m.err = leftOutError("the backup lacks chat " + m.chat.Spec.ParentRef.Name + ", which is above it, or one above that")
	case m.chat.UID == "":
		m.err = leftOutError("the backup lacks its metadata.uid: make the backup with kubectl get -o yaml")
	case !m.chat.DeletionTimestamp.IsZero(), m.chat.IsRestoring():
		m.err = leftOutError("it was being deleted or restored when the backup was made")
	case missing < length:
		m.err = leftOutError(fmt.Sprintf("the backup lacks message %d of the %d of its history", missing+1, length))
	}
}

// generatedMessages names the generated messages that are restored: those of the history, those that left it and that
// the operator has yet to remove, and the result of the attempt under way. The chat will not commit others.
func (m *member) generatedMessages() map[string]bool {
	kept := maps.Clone(m.committed)
	for _, left := range history.Left(m.chat, m.messages) {
		kept[left.Name] = true
	}
	for i := range m.messages {
		if attempts.AnswersCurrentAttempt(m.chat, &m.chat.Status, &m.messages[i]) {
			kept[m.messages[i].Name] = true
		}
	}
	return kept
}

// builtOn is the version of the history that a generated message built on; 0 for others.
func builtOn(m *v1beta1.ChatMessage) int64 {
	if m.Spec.Generation == nil {
		return 0
	}
	return m.Spec.Generation.HistoryVersion
}

// hasStatus reports whether the status of a message of a person or a client is restored. One that the chat committed
// after it was read for the backup is open.
func (m *member) hasStatus(old *v1beta1.ChatMessage) bool {
	if old.Status.State == v1beta1.MessageCommitted {
		return m.committed[old.Name] || m.chat.Status.Internal.Superseded != nil
	}
	return old.Spec.Generation == nil && old.Status.State != ""
}
