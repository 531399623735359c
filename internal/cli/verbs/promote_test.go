// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// queue lets a message wait in the chat's queue.
func (p *person) queue() *v1alpha1.ChatMessage {
	p.t.Helper()
	if err := p.start("token", "", "send", "triage", "--no-follow", "and then?").wait(); err != nil {
		p.t.Fatal(err)
	}
	m := p.sent()
	p.chat.Status.Phase = v1alpha1.ChatRunning
	p.chat.Status.Queue = []v1alpha1.QueuedMessage{{Name: m.Name}}
	p.updateStatus(p.chat)
	return m
}

// promoted waits until the message was told to cut in.
func (p *person) promoted(m *v1alpha1.ChatMessage) {
	p.t.Helper()
	for range poll(p.t, "the message is to cut in") {
		if err := p.c.Get(p.t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			p.t.Fatal(err)
		}
		if m.Spec.WhenBusy == v1alpha1.WhenBusyInterrupt {
			return
		}
	}
}

func TestAQueuedMessageCanBePromoted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	m := p.queue()
	c := p.start("token", "", "promote", "triage", m.Name)
	p.promoted(m)
	if m.Spec.Content != "and then?" {
		t.Errorf("the message became %+v", m.Spec)
	}
	p.chat.Status.Queue = nil
	p.updateStatus(p.chat)
	p.begin(m)
	p.settle(m, ready(metav1.ConditionUnknown, v1alpha1.ReasonBeingAnswered, ""))
	if err := c.wait(); err != nil || c.out.String() != "chatmessage.parley.dev/"+m.Name+" promoted: Committed\n" {
		t.Errorf("shown %q, %v", c.out.String(), err)
	}
}

func TestOnlyAMessageThatWaitsCanBePromoted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	if err := p.start("token", "", "promote", "triage", "other").wait(); err == nil ||
		!strings.HasSuffix(err.Error(), "none does") {
		t.Errorf("error %v", err)
	}
	m := p.queue()
	if err := p.start("token", "", "promote", "triage", "other").wait(); err == nil ||
		!strings.HasSuffix(err.Error(), "which is Running: there is "+m.Name) {
		t.Errorf("error %v", err)
	}
	c := p.start("token", "", "promote", "triage", m.Name, "--wait=false")
	if err := c.wait(); err != nil || c.out.String() != "chatmessage.parley.dev/"+m.Name+" promoted\n" {
		t.Errorf("shown %q, %v", c.out.String(), err)
	}
	p.promoted(m)
}
