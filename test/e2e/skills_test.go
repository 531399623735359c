// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// done is what a model says in the course of a conversation to end a turn.
func done() modelserver.Step { return modelserver.Say("Done.") }

// stepByStep is a model that makes these steps one after the other, each in a call of its own.
func stepByStep(steps ...modelserver.Step) (script modelserver.Script) {
	for i, step := range steps {
		script.Rules = append(script.Rules, modelserver.Rule{Match: modelserver.Match{Call: i + 1},
			Reply: modelserver.Reply{Steps: []modelserver.Step{step}}})
	}
	return script
}

func calling(name string, arguments map[string]any) modelserver.Step {
	return modelserver.Step{ToolCalls: []modelserver.ToolCall{callOf(name, arguments)}}
}

func writing(path, content string) modelserver.Step {
	return calling("write_file", map[string]any{"path": path, "content": content})
}

func fileOf(skill, path string) map[string]any { return map[string]any{"name": skill, "path": path} }

func TestModelRereadsSkillsAndWorkspaceContext(t *testing.T) {
	w := newWorld(t, stepByStep(
		calling("read_skill", map[string]any{"name": "greeting"}),
		calling("read_skill_file", fileOf("configmap/greeting", "texts/hello.txt")),
		done(),
		writing("AGENTS.md", "Always greet."),
		writing(".agents/skills/build/SKILL.md", "---\nname: build\ndescription: Builds it.\n---\nSee docs/how.md."),
		writing(".agents/skills/build/docs/how.md", "Call make."),
		calling("read_skill", map[string]any{"name": "workspace/build"}),
		calling("read_skill_file", fileOf("build", "docs/how.md")),
		calling("execute", map[string]any{"command": "printf 'Never %s.' greet >AGENTS.md"}),
		done(),
		calling("execute", map[string]any{"command": "true"}),
		done(),
	))
	w.template("shell")
	w.create(&corev1.ConfigMap{ObjectMeta: w.meta("manners"), Data: map[string]string{
		"SKILL.md":  "---\nname: greeting\ndescription: Greets people.\n---\nSay what texts/hello.txt has.",
		"hello.txt": "Ahoy!"}})
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Learn.",
		SkillsFrom: []v1beta1.SkillSource{{ConfigMapRef: v1beta1.ConfigMapReference{Name: "manners"},
			Items: []v1beta1.SkillItem{{Key: "hello.txt", Path: "texts/hello.txt"}}}},
		Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}}})
	w.ready("c", 6)
	check.Contains(t, w.lastBody(), "- configmap/greeting: Greets people.")
	err := c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "c"}, &v1beta1.Workspace{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a skill of a ConfigMap started the workspace: %v", err)
	}

	w.say("c", "work", "Work.")
	w.ready("c", 20)
	for i, want := range []string{`"body":"Say what texts/hello.txt has."`, `"content":"Ahoy!"`, `"created":true`, `"created":true`,
		`"created":true`, `"dir":".agents/skills/build"`, `"content":"Call make."`, `"success":true`} {
		if got := w.results("c")[i]; !strings.Contains(got.Output, want) || got.IsError {
			t.Errorf("result %d of %s is %q (an error: %t), want %q in it", i, got.Name, got.Output, got.IsError, want)
		}
	}
	if body := w.lastBody(); !strings.Contains(body, "Always greet.") || strings.Contains(body, "Never greet.") {
		t.Errorf("before the request the model was asked %s", body)
	}

	w.kubectlChat("refresh-context", "c")
	w.say("c", "more", "More.")
	w.ready("c", 24)
	if body := w.lastBody(); !strings.Contains(body, "Never greet.") ||
		!strings.Contains(body, "- workspace/build (.agents/skills/build/SKILL.md): Builds it.") {
		t.Errorf("after the request the model was asked %s", body)
	}
	if got := w.files("c"); len(got) != 3 || !slices.Equal(got[:2], []string{"AGENTS.md: Always greet.\n", "AGENTS.md: Never greet.\n"}) {
		t.Errorf("the history has files %q", got)
	}
}

// lastBody is the body of the newest request to the model.
func (w *world) lastBody() string {
	w.t.Helper()
	all := w.requests()
	return string(all[len(all)-1].Body)
}

// files are those in the chat's history, with their contents.
func (w *world) files(chat string) (files []string) {
	w.t.Helper()
	for _, m := range w.history(chat) {
		for i := range m.Spec.Parts {
			if f := m.Spec.Parts[i].File; f != nil {
				content, err := f.Content()
				if err != nil {
					w.t.Error(err)
				}
				files = append(files, f.Name+": "+string(content))
			}
		}
	}
	return files
}

func TestModelChoosesStopsAndResumesWorkspace(t *testing.T) {
	t.Parallel()
	script := works(
		callOf("list_templates", map[string]any{}),
		callOf("read_template", map[string]any{"template": "shell"}),
		callOf("create_workspace", map[string]any{"template": "nope"}),
		callOf("create_workspace", map[string]any{"template": "shell", "parameters": []map[string]any{
			{"name": "who", "value": "$(whoami) \"x\""}}}),
		callOf("write_file", map[string]any{"path": "AGENTS.md", "content": "Always greet."}),
		callOf("execute", map[string]any{"command": "echo for $WHO"}),
		callOf("attach_file", map[string]any{"path": "AGENTS.md", "name": "rules.txt"}),
		callOf("create_workspace", map[string]any{"template": "shell"}),
		callOf("stop_workspace", map[string]any{}),
		callOf("start_workspace", map[string]any{}),
		callOf("execute", map[string]any{"command": "echo again for $WHO"}),
	)
	for i := range script.Rules[:len(script.Rules)-1] {
		// By its number, because files come from a user: after them there are no results yet.
		script.Rules[i].Match = modelserver.Match{Call: i + 1}
	}
	w := newWorld(t, script)
	w.template("shell")
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Find a place to work.",
		Workspace: &v1beta1.WorkspaceSource{PodTemplateSelector: &v1beta1.WorkspaceTemplateSelector{}}}})
	w.ready("c", 24)
	for i, want := range []struct {
		says    string
		isError bool
	}{
		{`"name":"shell"`, false}, {`"default":"world"`, false}, {"the templates are: shell", true},
		{`"template":"shell"`, false}, {`"created":true`, false}, {`for $(whoami) \"x\"`, false}, {`"media_type":"text/plain"`, false},
		{"has a workspace from template shell already", true},
		{`"stopping":true`, false}, {`"directory":"/workspace"`, false}, {`again for $(whoami) \"x\"`, false},
	} {
		if got := w.results("c")[i]; !strings.Contains(got.Output, want.says) || got.IsError != want.isError {
			t.Errorf("result %d of %s is %q (an error: %t), want %q in it", i, got.Name, got.Output, got.IsError, want.says)
		}
	}
	if got := w.files("c"); !slices.Equal(got, []string{"AGENTS.md: Always greet.\n", "rules.txt: Always greet."}) {
		t.Errorf("the history has files %q", got)
	}
	chat := w.chat("c")
	chosen := chat.Status.Workspace
	if chosen == nil || chosen.PodTemplateRef == nil || chosen.PodTemplateRef.Name != "shell" || chosen.StoppedAt == nil {
		t.Errorf("the chat remembers %+v", chosen)
	}
	ws := w.workspace("c")
	if !meta.IsStatusConditionTrue(ws.Status.Conditions, v1beta1.ConditionReady) ||
		ws.Status.Pod == nil || ws.Spec.Source.PodTemplateSelector == nil {
		t.Errorf("the workspace is %+v", ws)
	}
}
