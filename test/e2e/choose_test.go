// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

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
	w.create(&v1alpha1.Chat{ObjectMeta: w.meta("c"), Spec: v1alpha1.ChatSpec{Prompt: "Find a place to work.",
		Workspace: &v1alpha1.WorkspaceSource{PodTemplateSelector: &v1alpha1.WorkspaceTemplateSelector{}}}})
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
	if !meta.IsStatusConditionTrue(ws.Status.Conditions, v1alpha1.ConditionReady) ||
		ws.Status.Pod == nil || ws.Spec.Source.PodTemplateSelector == nil {
		t.Errorf("the workspace is %+v", ws)
	}
}
