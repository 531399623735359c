// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// hold makes a message wait for so long; 0 releases it.
func hold(t *testing.T, ns, name string, d time.Duration) {
	t.Helper()
	m := messageIn(t, ns, name)
	before := m.DeepCopy()
	delete(m.Annotations, v1beta1.AnnotationHoldUntil)
	if d > 0 {
		m.Annotations = map[string]string{v1beta1.AnnotationHoldUntil: time.Now().Add(d).UTC().Format(time.RFC3339)}
	}
	check.OK(t, cluster.Client.Patch(t.Context(), m, client.MergeFrom(before)))
}

func setArchived(t *testing.T, ns, name string, archived bool) {
	t.Helper()
	chat := chatIn(t, ns, name)
	before := chat.DeepCopy()
	chat.Spec.Archived = archived
	check.OK(t, cluster.Client.Patch(t.Context(), chat, client.MergeFrom(before)))
}

func waitForEdit(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, "chat "+name+" only waits for an edit", func() bool {
		st := chatIn(t, ns, name).Status
		return st.Phase == v1beta1.ChatWaiting && st.Wait != nil && st.Wait.For == v1beta1.WaitForEdit
	})
}

func TestQueuedMessageIsHeldWhileItIsEdited(t *testing.T) {
	ns := parallel(t)
	first := started(t, ns, "c", "first")
	queued(t, ns, "c", "second")
	hold(t, ns, "second", 10*time.Minute)
	waitForMessage(t, ns, "second", metav1.ConditionUnknown, v1beta1.ReasonWaitingForEdit)
	answers(t, first, chattest.Says("Fine."))
	waitForEdit(t, ns, "c")
	generation := messageIn(t, ns, "second").Generation
	hold(t, ns, "second", 0)
	chat := assigned(t, ns, "c", 3, 1)
	check.Equal(t, "the turn began with", "second", chat.Status.Turn.Message)
	check.Equal(t, "the generation of the message", generation, messageIn(t, ns, "second").Generation)
}

func TestExpiredHoldReleasesTheMessage(t *testing.T) {
	ns := parallel(t)
	first := started(t, ns, "c", "first")
	queued(t, ns, "c", "second")
	hold(t, ns, "second", 5*time.Second)
	answers(t, first, chattest.Says("Fine."))
	check.Equal(t, "the turn began with", "second", assigned(t, ns, "c", 3, 1).Status.Turn.Message)
}

func TestArchivedChatReleasesItsHeldMessage(t *testing.T) {
	ns := parallel(t)
	first := started(t, ns, "c", "first")
	queued(t, ns, "c", "second")
	hold(t, ns, "second", 10*time.Minute)
	waitForMessage(t, ns, "second", metav1.ConditionUnknown, v1beta1.ReasonWaitingForEdit)
	answers(t, first, chattest.Says("Fine."))
	waitForEdit(t, ns, "c")
	setArchived(t, ns, "c", true)
	waitForMessage(t, ns, "second", metav1.ConditionUnknown, v1beta1.ReasonChatArchived)
	setArchived(t, ns, "c", false)
	waitForMessage(t, ns, "second", metav1.ConditionUnknown, v1beta1.ReasonWaitingForEdit)
	hold(t, ns, "second", 0)
	check.Equal(t, "the turn began with", "second", assigned(t, ns, "c", 3, 1).Status.Turn.Message)
}
