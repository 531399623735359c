// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// answered is a backup of a chat with two turns.
func answered(name string, change ...func(*v1beta1.Chat)) *Backup {
	chat := chattest.In("ns", chattest.Chat(name, append(change, chattest.UID("uid of c"))...))
	b := &Backup{}
	for _, text := range []string{"first", "second"} {
		question, answer := chattest.AnsweredTurn(chat, text, chattest.Now)
		b.Messages = append(b.Messages, *answer, *question)
	}
	b.Chats = []v1beta1.Chat{*chat}
	return b
}

// only is the one chat of the backup.
func only(t *testing.T, b *Backup) *member {
	t.Helper()
	families, err := b.families(nil)
	check.OK(t, err)
	if len(families) != 1 || len(families[0]) != 1 {
		t.Fatalf("there are the families %v", families)
	}
	return families[0][0]
}

func TestMessagesComeBeforeThoseThatFollowThem(t *testing.T) {
	b := answered("c")
	note := chattest.In("ns", chattest.User("c", "note"))
	late := b.Messages[0].DeepCopy()
	late.Name, late.Spec.Generation.Attempt = "c-1-2", 2
	earlier := b.Messages[1].DeepCopy()
	earlier.Name, earlier.Status.ChatUID = "earlier", "another"
	b.Messages = append(b.Messages, *note, *late, *earlier)
	m := only(t, b)
	check.OK(t, m.err)
	var names []string
	for _, message := range m.messages {
		names = append(names, message.Name)
	}
	check.Equal(t, "order", []string{"c-q0", "c-q1", "note", "c-1-1", "c-3-1"}, names)
}

func TestForkWithoutHistoryIsRestoredWithoutCopies(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("f", chattest.UID("fork"), func(c *v1beta1.Chat) {
		c.Spec.Fork = &v1beta1.ForkSource{Chat: "c", Message: "c-1-1"}
	}))
	copied, own := *chattest.In("ns", chattest.User("f", "f-from-0")), *chattest.In("ns", chattest.User("f", "f-from-me"))
	copied.Annotations = map[string]string{v1beta1.AnnotationRestoredFrom: "uid"}
	m := only(t, &Backup{Chats: []v1beta1.Chat{*chat}, Messages: []v1beta1.ChatMessage{copied, own}})
	check.OK(t, m.err)
	if len(m.messages) != 1 || m.messages[0].Name != "f-from-me" {
		t.Errorf("restored are %v", m.messages)
	}
}

func TestRedactionMakesAnotherBackup(t *testing.T) {
	before, redacted := answered("c"), answered("c")
	redacted.Messages[0].Annotations = map[string]string{v1beta1.AnnotationRedacted: "hash"}
	if a, b := only(t, before).backup, only(t, redacted).backup; a == b {
		t.Errorf("both have the identity %s", a)
	}
}

func TestIncompleteChatIsLeftOut(t *testing.T) {
	for want, change := range map[string]func(*Backup){
		"the backup lacks message 2 of the 4 of its history": func(b *Backup) {
			b.Messages = b.Messages[1:]
		},
		"it was being deleted or restored when the backup was made": func(b *Backup) {
			b.Chats[0].DeletionTimestamp = new(metav1.NewTime(time.Now()))
		},
		"the backup lacks chat above, which is above it, or one above that": func(b *Backup) {
			b.Chats[0].Spec.ParentRef = &v1beta1.ChatReference{Name: "above"}
		},
	} {
		b := answered("c")
		change(b)
		if m := only(t, b); m.err == nil || m.err.Error() != want {
			t.Errorf("got %v, want %s", m.err, want)
		}
	}
}

func TestNamesSelectWholeFamilies(t *testing.T) {
	b := &Backup{Chats: []v1beta1.Chat{*chattest.Chat("b", chattest.ChildOf("a")), *chattest.Chat("a"),
		*chattest.Chat("c", chattest.ChildOf("b")), *chattest.Chat("d")}}
	families, err := b.families([]string{"c"})
	check.OK(t, err)
	var names []string
	for _, m := range families[0] {
		names = append(names, m.chat.Name)
	}
	check.Equal(t, "families", 1, len(families))
	check.Equal(t, "members", []string{"a", "b", "c"}, names)
	if _, err := b.families([]string{"e"}); err == nil || err.Error() != "the backup has no chat e" {
		t.Errorf("got %v", err)
	}
}
