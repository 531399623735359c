// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/content"
)

func TestStaleViewIsCertainWithoutOtherPossibleCommit(t *testing.T) {
	says := func(name, text string) *v1beta1.ChatMessage {
		return &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Content: text}}
	}
	generated := func(chatUID string) *v1beta1.ChatMessage {
		return &v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleAssistant,
			Generation: &v1beta1.MessageGeneration{ChatUID: chatUID}}}
	}
	asked := says("m", "hello")
	atWork := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	atWork.Status.Turn = &v1beta1.TurnStatus{Message: "m"}
	atWork.Status.Internal.Turn.ContentHash = content.Hash(&asked.Spec)
	afterwards := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	afterwards.Status.Turn = &v1beta1.TurnStatus{Message: "n"}
	afterwards.Status.Internal.Tail = []v1beta1.CommittedMessage{{Message: "m", ContentHash: content.Hash(&asked.Spec)},
		{Message: "n"}}
	for name, c := range map[string]struct {
		chat *v1beta1.Chat
		m    *v1beta1.ChatMessage
		want bool
	}{
		"a reply":                                {atWork, generated("uid"), true},
		"a reply to an earlier chat of the name": {atWork, generated("another"), false},
		"the message of the turn":                {atWork, asked, true},
		"the same, as it was before an edit":     {atWork, says("m", "hallo"), false},
		"a message of an earlier turn":           {atWork, says("l", "hello"), false},
		"the message of the turn before":         {afterwards, asked, true},
		"the same, after an edit":                {afterwards, says("m", "hallo"), false},
		"a message before the first turn":        {&v1beta1.Chat{}, asked, false},
	} {
		if got := Certain(c.chat, c.m); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	atWork.Name = "c"
	for name, want := range map[string]bool{"m": true, "c-3-1": true, "l": false, "d-3-1": false} {
		if got := MayBeCertain(atWork, name); got != want {
			t.Errorf("a message named %s: %v, want %v", name, got, want)
		}
	}
}
