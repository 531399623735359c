// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// queue lets a message wait in the chat's queue.
func (p *person) queue() *v1alpha1.ChatMessage {
	p.t.Helper()
	p.run("send", "triage", "--no-follow", "and then?").succeeds()
	m := p.sent()
	p.chat.Status.Phase = v1alpha1.ChatRunning
	p.chat.Status.Queue = []v1alpha1.QueuedMessage{{Name: m.Name}}
	p.updateStatus(p.chat)
	return m
}

// promoted waits until the message was told to cut in.
func (p *person) promoted(m *v1alpha1.ChatMessage) {
	p.t.Helper()
	eventually(p.t, "the message interrupts", func() bool {
		p.get(m)
		return m.Spec.WhenBusy == v1alpha1.WhenBusyInterrupt
	})
}

func TestAQueuedMessageCanBePromoted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	m := p.queue()
	c := p.run("promote", "triage", m.Name)
	p.promoted(m)
	if m.Spec.Content != "and then?" {
		t.Errorf("the message became %+v", m.Spec)
	}
	p.chat.Status.Queue = nil
	p.updateStatus(p.chat)
	p.begin(m)
	p.settle(m, ready(metav1.ConditionUnknown, v1alpha1.ReasonBeingAnswered, ""))
	c.shows("chatmessage.parley.dev/" + m.Name + " promoted: Committed\n")
}

func TestOnlyAMessageThatWaitsCanBePromoted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("promote", "triage", "other").fails(": none does")
	m := p.queue()
	p.run("promote", "triage", "other").fails("which is Running: there is " + m.Name)
	p.run("promote", "triage", m.Name, "--wait=false").shows("chatmessage.parley.dev/" + m.Name + " promoted\n")
	p.promoted(m)
}
