// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// template creates a template of workspaces.
func (p *person) template(name string) {
	p.t.Helper()
	p.create(&corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name,
		Labels:      map[string]string{v1beta1.LabelWorkspaceTemplate: "true"},
		Annotations: map[string]string{v1beta1.AnnotationDescription: "A shell."}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}})
}

func TestNewAcceptsTemplateBeyondThoseListed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for i := range apiclient.MaxTemplates {
		p.template(fmt.Sprintf("a-%d", i))
	}
	p.template("shell")
	p.start("certificate", "", "new", "a", "--workspace", "shell").succeeds()
}

func TestNewRefusesAnUnknownWorkspaceTemplate(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	asAdmin := func(args ...string) *command { return p.start("certificate", "", append([]string{"new"}, args...)...) }
	asAdmin("a", "--workspace", "go").exits(exitNotFound, "has no workspace template go: there is none")
	p.template("shell")
	asAdmin("a", "--workspace", "go").exits(exitNotFound, "has no workspace template go: there is shell")
	asAdmin("a", "--workspace-storage").exits(exitUsage, "--workspace names")
	asAdmin("a", "--workspace", "shell", "--workspace-storage").succeeds()
	chat := &v1beta1.Chat{ObjectMeta: p.meta("a")}
	p.get(chat)
	check.Equal(t, "storage", true, chat.Spec.Workspace.HasStorage())
	p.run("new", "b", "--workspace", "other").succeeds() // Who may not list templates finds out later.
	check.Equal(t, "completion", "shell\tA shell.\n:4\n", p.completed("certificate", "new --workspace |"))
}

func TestRefusedNewCreatesNoChat(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.create(chattest.In(p.namespace, chattest.Class("coder")))
	for flag, want := range map[string]string{
		"--class=none": "has no ChatClass none: there is coder",
		"--model=none": "has no ChatModelConfig none: there is none",
	} {
		p.start("certificate", "", "new", "refused", flag, "hello").exits(exitNotFound, want)
		p.start("certificate", "", "run", flag, "hello").exits(exitNotFound, want)
	}
	p.run("new", "refused", "--file", "/none", "hello").exits(exitUsage, "/none: no such file")
	var chats v1beta1.ChatList
	check.OK(t, p.c.List(t.Context(), &chats, client.InNamespace(p.namespace)))
	check.Equal(t, "chats", 1, len(chats.Items)) // that of the person
}

func TestAttachedFileMayBeAPipe(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	read, write, err := os.Pipe()
	check.OK(t, err)
	_, err = write.WriteString("a list")
	check.OK(t, errors.Join(err, write.Close()))
	path := fmt.Sprintf("/dev/fd/%d", read.Fd())
	p.run("new", "piped", "What is this?", "--no-follow", "--file", path).succeeds()
	check.OK(t, read.Close())
	m := find(p, "the message has the file", &v1beta1.ChatMessageList{},
		func(m *v1beta1.ChatMessage) bool { return m.Spec.ChatRef.Name == "piped" })
	check.Equal(t, "file", base64.StdEncoding.EncodeToString([]byte("a list")), m.Spec.Parts[1].File.Data)
}

func TestRunWithoutTextReadsStandardInput(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.start("token", "", "run").exits(exitUsage, "there is nothing to ask")
	p.start("token", "Why?\n", "run", "--timeout", "1s").exits(exitTimedOut, "timed out")
	var chats v1beta1.ChatList
	check.OK(t, p.c.List(t.Context(), &chats, client.InNamespace(p.namespace)))
	if !slices.ContainsFunc(chats.Items, func(c v1beta1.Chat) bool { return c.Spec.Prompt == "Why?" }) {
		t.Errorf("no chat asks: %d chats", len(chats.Items))
	}
}

func TestStandardInputFollowsText(t *testing.T) {
	for stdin, c := range map[string]struct {
		words []string
		want  string
	}{
		"whole\n": {[]string{"-"}, "whole"},
		"a log\n": {[]string{"Why", "so?", "-"}, "Why so?\n\na log"},
		"unread":  {[]string{"a", "-", "b"}, "a - b"},
		"none":    {nil, ""},
		"\n":      {[]string{"Why?", "-"}, ""}, // refused
	} {
		o := &options{}
		o.In = strings.NewReader(stdin)
		text, err := o.textOf(c.words)
		check.Equal(t, "refused", stdin == "\n", err != nil)
		check.Equal(t, stdin, c.want, text)
	}
}

func TestUnusableSchemaIsRefusedWithItsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.json")
	for content, want := range map[string]string{"[1": "yaml", `"text"`: "object",
		`{"type": "object", "required": 5}`: "required", `{"type": "array"}`: "object"} {
		check.OK(t, os.WriteFile(file, []byte(content), 0o600))
		var out, errOut strings.Builder
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		code := Run(t.Context(), streams, []string{"run", "--kubeconfig", "/none", "--output-schema", file, "why?"})
		check.Equal(t, content, exitUsage, code)
		check.Contains(t, errOut.String(), "the schema of the answer in "+file+" cannot be used: ", want)
	}
}
