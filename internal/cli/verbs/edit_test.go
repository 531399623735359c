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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// said is a message that was answered.
func (p *person) said(name, text string) *v1beta1.ChatMessage {
	p.t.Helper()
	p.write(name, text)
	m := p.sent()
	p.begin(m)
	p.answer(m, "the answer to "+text)
	return m
}

func (p *person) content(m *v1beta1.ChatMessage) string {
	p.t.Helper()
	p.get(m)
	return m.Spec.Content
}

// editor is a program that does something to the file that is edited.
func (p *person) editor(script string) {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "editor")
	check.OK(p.t, os.WriteFile(path, []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o700))
	p.t.Setenv("KUBE_EDITOR", path)
	p.t.Setenv("TMPDIR", p.t.TempDir())
}

func TestAMessageIsEdited(t *testing.T) {
	p := newPerson(t)
	m := p.said("first", "why?")
	p.run("edit", "triage", "first", "why", "not?").shows("chatmessage.parley.dev/first edited\n")
	check.Equal(t, "content", "why not?", p.content(m))
	p.editor(`grep -q "why not" "$1"; echo "in an editor" > "$1"`)
	p.run("edit", "triage", "first").shows("chatmessage.parley.dev/first edited\n")
	check.Equal(t, "content", "in an editor", p.content(m))
	p.editor("true")
	p.run("edit", "triage", "first").shows("chatmessage.parley.dev/first not changed\n")
}

func TestRefusedEditKeepsWhatWasWritten(t *testing.T) {
	p := newPerson(t)
	m := p.said("first", "why?")
	opened := filepath.Join(t.TempDir(), "opened")
	p.editor(`echo "late" > "$1"; touch ` + opened + `; while [ -e ` + opened + ` ]; do sleep 0.01; done`)
	c := p.run("edit", "triage", "first")
	eventually(t, "the editor is open", func() bool {
		_, err := os.Stat(opened)
		return err == nil
	})
	m.Spec.Content = "somebody was faster"
	p.update(m)
	check.OK(t, os.Remove(opened))
	err := c.wait()
	if exitCode(err) != exitConflict || p.content(m) != "somebody was faster" {
		t.Fatalf("it says %q: %v", m.Spec.Content, err)
	}
	_, path, _ := strings.Cut(err.Error(), "what you wrote is in ")
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "late\n" {
		t.Errorf("kept is %q, %v", kept, err)
	}
}

func TestEditorHoldsMessageThatWaits(t *testing.T) {
	p := newPerson(t)
	p.write("first", "why?")
	m := p.sent()
	opened := filepath.Join(t.TempDir(), "opened")
	p.editor(`echo "why not?" > "$1"; touch ` + opened + `; while [ -e ` + opened + ` ]; do sleep 0.01; done`)
	c := p.run("edit", "triage", "first")
	eventually(t, "the message is held", func() bool {
		p.get(m)
		return m.Annotations[v1beta1.AnnotationHoldUntil] != ""
	})
	eventually(t, "the editor is open", func() bool { return os.Remove(opened) == nil })
	c.shows("chatmessage.parley.dev/first edited\n")
	if p.content(m) != "why not?" || m.Annotations[v1beta1.AnnotationHoldUntil] != "" {
		t.Errorf("it says %q, annotated with %v", m.Spec.Content, m.Annotations)
	}
}

func TestTheOperatorsOwnWritesAreNoEdits(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	m := p.said("first", "why?")
	old := m.DeepCopy()
	m.Status.Conditions = ready(metav1.ConditionUnknown, v1beta1.ReasonAnswering, "")
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
	p.create(&v1beta1.Chat{ObjectMeta: p.meta("other")})
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"edit triage " + p.chat.Status.History.Head + " x", "was not said by a person", exitFailed},
		{"edit other first x", "chat other has no message first", exitNotFound},
		{"edit triage second x", "chat triage has no message second", exitNotFound},
		{"delete other first", "chat other has no message first", exitNotFound},
	} {
		p.run(strings.Fields(c.args)...).exits(c.code, c.want)
	}
}

func TestAMessageAndAChatAreDeleted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	m := p.said("first", "why?")
	p.run("delete", "triage", "first").shows("chatmessage.parley.dev/first deleted\n")
	if err := p.c.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
		t.Errorf("the message: %v", err)
	}
	p.run("delete", "triage", "-o", "name").shows("chat.parley.dev/triage\n")
	if err := p.c.Get(t.Context(), client.ObjectKeyFromObject(p.chat), p.chat); !apierrors.IsNotFound(err) {
		t.Errorf("the chat: %v", err)
	}
}

func TestWhatFinalizersHoldIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.chat.Finalizers = []string{"parley.dev/test"}
	p.update(p.chat)
	p.run("delete", "triage", "--timeout", "1500ms").exits(exitTimedOut, "finalizers")
	p.run("delete", "triage", "--wait=false").shows("chat.parley.dev/triage deleted\n")
	p.get(p.chat)
	p.chat.Finalizers = nil
	p.update(p.chat)
}
