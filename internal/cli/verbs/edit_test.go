// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// said is a message that was answered.
func (p *person) said(name, text string) *v1alpha1.ChatMessage {
	p.t.Helper()
	p.create(&v1alpha1.ChatMessage{ObjectMeta: p.meta(name), Spec: v1alpha1.ChatMessageSpec{
		ChatRef: v1alpha1.ChatReference{Name: "triage"}, Role: v1alpha1.RoleUser, Content: text}})
	m := p.sent()
	p.begin(m)
	p.answer(m, "the answer to "+text)
	return m
}

func (p *person) content(m *v1alpha1.ChatMessage) string {
	p.t.Helper()
	if err := p.c.Get(p.t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		p.t.Fatal(err)
	}
	return m.Spec.Content
}

// editor is a program that does something to the file that is edited.
func (p *person) editor(script string) {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "editor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o700); err != nil {
		p.t.Fatal(err)
	}
	p.t.Setenv("KUBE_EDITOR", path)
	p.t.Setenv("TMPDIR", p.t.TempDir())
}

func TestAMessageIsEdited(t *testing.T) {
	p := newPerson(t)
	m := p.said("first", "why?")
	if got := p.shown("edit", "triage", "first", "why", "not?"); got != "chatmessage.parley.dev/first edited\n" ||
		p.content(m) != "why not?" {
		t.Errorf("shown %q, it says %q", got, m.Spec.Content)
	}
	p.editor(`grep -q "why not" "$1"; echo "in an editor" > "$1"`)
	if got := p.shown("edit", "triage", "first"); got != "chatmessage.parley.dev/first edited\n" ||
		p.content(m) != "in an editor" {
		t.Errorf("shown %q, it says %q", got, m.Spec.Content)
	}
	p.editor("true")
	if got := p.shown("edit", "triage", "first"); got != "chatmessage.parley.dev/first not changed\n" {
		t.Errorf("shown %q", got)
	}
}

func TestRefusedEditKeepsWhatWasWritten(t *testing.T) {
	p := newPerson(t)
	m := p.said("first", "why?")
	opened := filepath.Join(t.TempDir(), "opened")
	p.editor(`echo "late" > "$1"; touch ` + opened + `; while [ -e ` + opened + ` ]; do sleep 0.01; done`)
	c := p.start("token", "", "edit", "triage", "first")
	for range poll(t, "the editor is open") {
		if _, err := os.Stat(opened); err == nil {
			break
		}
	}
	m.Spec.Content = "somebody was faster"
	if err := p.c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(opened); err != nil {
		t.Fatal(err)
	}
	err := c.wait()
	if exitCode(err) != exitConflict || p.content(m) != "somebody was faster" {
		t.Fatalf("it says %q: %v", m.Spec.Content, err)
	}
	_, path, _ := strings.Cut(err.Error(), "what you wrote is in ")
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "late\n" {
		t.Errorf("kept is %q, %v", kept, err)
	}
}

func TestTheOperatorsOwnWritesAreNoEdits(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	m := p.said("first", "why?")
	old := m.DeepCopy()
	m.Status.Conditions = ready(metav1.ConditionUnknown, v1alpha1.ReasonBeingAnswered, "")
	p.updateStatus(m)
	s := p.session()
	if err := changeMessage(t.Context(), s, old, "why not?"); err != nil || p.content(m) != "why not?" {
		t.Errorf("it says %q: %v", m.Spec.Content, err)
	}
}

func TestOnlyWhatAPersonSaidIsEdited(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "why?")
	p.create(&v1alpha1.Chat{ObjectMeta: p.meta("other")})
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"edit triage " + p.chat.Status.History.Head + " x", "was not said by a person", exitFailed},
		{"edit other first x", "chat other has no message first", exitNotFound},
		{"edit triage second x", "chat triage has no message second", exitNotFound},
		{"delete other first", "chat other has no message first", exitNotFound},
	} {
		if err := p.start("token", "", strings.Fields(c.args)...).wait(); err == nil || exitCode(err) != c.code ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", c.args, err)
		}
	}
}

func TestAMessageAndAChatAreDeleted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	m := p.said("first", "why?")
	if got := p.shown("delete", "triage", "first"); got != "chatmessage.parley.dev/first deleted\n" {
		t.Errorf("shown %q", got)
	}
	if err := p.c.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
		t.Errorf("the message: %v", err)
	}
	if got := p.shown("delete", "triage", "-o", "name"); got != "chat.parley.dev/triage\n" {
		t.Errorf("shown %q", got)
	}
	if err := p.c.Get(t.Context(), client.ObjectKeyFromObject(p.chat), p.chat); !apierrors.IsNotFound(err) {
		t.Errorf("the chat: %v", err)
	}
}

func TestWhatFinalizersHoldIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.chat.Finalizers = []string{"parley.dev/test"}
	if err := p.c.Update(t.Context(), p.chat); err != nil {
		t.Fatal(err)
	}
	c := p.start("token", "", "delete", "triage", "--timeout", "1500ms")
	if err := c.wait(); exitCode(err) != exitTimedOut || !strings.Contains(err.Error(), "finalizers") {
		t.Errorf("error %v", err)
	}
	if got := p.shown("delete", "triage", "--wait=false"); got != "chat.parley.dev/triage deleted\n" {
		t.Errorf("shown %q", got)
	}
	if err := p.c.Get(t.Context(), client.ObjectKeyFromObject(p.chat), p.chat); err != nil {
		t.Fatal(err)
	}
	p.chat.Finalizers = nil
	if err := p.c.Update(t.Context(), p.chat); err != nil {
		t.Fatal(err)
	}
}
