// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestAccessEndsWhileAnotherPartFails(t *testing.T) {
	w := newWorld(t)
	chat := w.chat()
	chat.Spec.Sharing = []v1beta1.ChatShare{{Kind: v1beta1.ShareUser, Name: "jane",
		Until: &metav1.Time{Time: now.Add(-time.Second)}}}
	check.OK(t, w.Direct.Update(t.Context(), chat))
	chat.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionShared, Status: metav1.ConditionTrue,
		Reason: string(v1beta1.ReasonShared), LastTransitionTime: metav1.Time{Time: now}}}
	check.OK(t, w.Direct.Status().Update(t.Context(), chat))
	w.pods.refused = errors.New("no pod can be assigned")
	if _, err := w.reconcile(); err == nil {
		t.Fatal("the pass succeeds")
	}
	if !slices.Contains(w.Writes(), "delete rolebinding") {
		t.Errorf("the writes are %v", w.Writes())
	}
}

func TestConditionCountsSubChatsWithoutReaders(t *testing.T) {
	readers := []v1beta1.ChatShare{{Kind: v1beta1.ShareServiceAccount, Name: "bot", Namespace: "ci"}}
	check.Equal(t, "without", "Readable by ServiceAccount bot of namespace ci", describe(readers, 0))
	if text := describe(readers, 3); !strings.Contains(text, "3 sub-chats are not") {
		t.Errorf("the condition says %q", text)
	}
}
