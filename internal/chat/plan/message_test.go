// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func TestOnlyATraceContextIsTakenForOne(t *testing.T) {
	m := &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationTraceparent: "nonsense"}}}
	if got := traceparentOf(m); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestPromptInheritsTraceAndAuthorOfChat(t *testing.T) {
	handed := map[string]string{v1beta1.AnnotationTraceparent: "00-a-b-01", v1beta1.AnnotationCreatedBy: "anna"}
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{"other": "x"}}}
	if got := PromptMessage(chat).Annotations; len(got) != 0 {
		t.Errorf("annotated with %v", got)
	}
	maps.Copy(chat.Annotations, handed)
	if got := PromptMessage(chat).Annotations; !maps.Equal(got, handed) {
		t.Errorf("annotated with %v", got)
	}
}

func TestMessageOfAnEarlierChatIsNotOpen(t *testing.T) {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "new"}}
	earlier := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "old"}}
	parent := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "other"}}
	from := func(owner *v1beta1.Chat, uid string) *v1beta1.ChatMessage {
		m := PromptMessage(owner)
		m.Spec.ChatRef.Name, m.Status.ChatUID = "c", uid
		return m
	}
	for name, c := range map[string]struct {
		message *v1beta1.ChatMessage
		open    bool
	}{
		"nobody's yet":                   {&v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, true},
		"the chat's own prompt":          {from(chat, ""), true},
		"the prompt of an earlier chat":  {from(earlier, ""), false},
		"taken up by an earlier chat":    {from(chat, "old"), false},
		"one that belongs to its parent": {from(parent, ""), true},
	} {
		if got := IsOpen(chat, c.message); got != c.open {
			t.Errorf("%s: it is open: %t", name, got)
		}
	}
}
