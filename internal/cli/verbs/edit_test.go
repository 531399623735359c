// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
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
	const edited = "chatmessage.parley.dev/first edited, and 1 message after it removed from the history\n"
	p.run("edit", "triage", "first", "why", "not?").shows(edited)
	check.Equal(t, "content", "why not?", p.content(m))
	p.editor(`grep -q "why not" "$1"; echo "in an editor" > "$1"`)
	p.run("edit", "triage", "first").shows(edited)
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

// holding edits a message that waits, up to when its editor is open. What closes that is returned.
func (p *person) holding() (m *v1beta1.ChatMessage, c *command, closeEditor func()) {
	p.t.Helper()
	p.write("first", "why?")
	m = p.sent()
	opened := filepath.Join(p.t.TempDir(), "opened")
	p.editor(`echo "why not?" > "$1"; touch ` + opened + `; while [ -e ` + opened + ` ]; do sleep 0.01; done`)
	c = p.run("edit", "triage", "first")
	eventually(p.t, "the editor is open", func() bool {
		_, err := os.Stat(opened)
		return err == nil
	})
	p.get(m)
	if m.Annotations[v1beta1.AnnotationHoldUntil] == "" {
		p.t.Error("the editor is open, and the message is not held")
	}
	return m, c, func() { check.OK(p.t, os.Remove(opened)) }
}

func TestEditorHoldsMessageThatWaits(t *testing.T) {
	p := newPerson(t)
	m, c, closeEditor := p.holding()
	closeEditor()
	c.shows("chatmessage.parley.dev/first edited\n")
	if p.content(m) != "why not?" || m.Annotations[v1beta1.AnnotationHoldUntil] != "" {
		t.Errorf("it says %q, annotated with %v", m.Spec.Content, m.Annotations)
	}
}

func TestCanceledEditReleasesItsMessage(t *testing.T) {
	p := newPerson(t)
	m, c, _ := p.holding()
	c.stop()
	c.fails("what you wrote is in ")
	if p.content(m) != "why?" || m.Annotations[v1beta1.AnnotationHoldUntil] != "" {
		t.Errorf("it says %q, annotated with %v", m.Spec.Content, m.Annotations)
	}
}

func TestEditorKeepsTheHoldOfAnother(t *testing.T) {
	p := newPerson(t)
	m, c, closeEditor := p.holding()
	const another = "2030-01-01T00:00:00Z"
	m.Annotations[v1beta1.AnnotationHoldUntil] = another
	p.update(m)
	closeEditor()
	c.shows("chatmessage.parley.dev/first edited\n")
	p.get(m)
	check.Equal(t, "held until", another, m.Annotations[v1beta1.AnnotationHoldUntil])
}

// The turn begins although the message is held, and the message does not report that yet.
func TestEditDoesNotCutTurnBegunMeanwhile(t *testing.T) {
	p := newPerson(t)
	m, c, closeEditor := p.holding()
	h := p.chat.Status.History
	p.commit(m.Name)
	p.chat.Status.Turn = &v1beta1.TurnStatus{Message: m.Name, Parent: h.Head, HistoryVersion: h.Version + 1}
	p.updateStatus(p.chat)
	closeEditor()
	c.exits(exitConflict, "the chat has started message first meanwhile")
	check.Equal(t, "content", "why?", p.content(m))
}

func TestEditorWarnsIfMessageIsNotHeld(t *testing.T) {
	p := newPerson(t)
	p.write("first", "why?")
	p.editor(`echo "why not?" > "$1"`)
	role := &rbacv1.Role{ObjectMeta: p.meta("person")}
	p.get(role)
	role.Rules[0].Verbs = []string{"get"}
	p.update(role)
	eventually(t, "the person may not change messages", func() bool { return !p.may("patch", "chatmessages") })
	c := p.run("edit", "triage", "first")
	c.fails("editing message first")
	check.Contains(t, c.errOut.String(), "message first may be started while you edit it: ", "forbidden")
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
	p.run("delete", "triage", "first").shows("chatmessage.parley.dev/first deleted, and 1 message after it removed " +
		"from the history\n")
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
