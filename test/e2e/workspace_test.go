// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

var toolbox = cmp.Or(os.Getenv("TOOLBOX_IMAGE"), "parley.dev/toolbox:dev")

// template creates a workspace template with a shell, and a program that runs in addition to the commands. change edits
// its pod.
func (w *world) template(name string, change ...func(*corev1.PodSpec)) {
	w.t.Helper()
	made := &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name,
			Labels:      map[string]string{v1beta1.LabelWorkspaceTemplate: "true"},
			Annotations: map[string]string{v1beta1.AnnotationParameters: "- {name: who, default: world, places: [env/WHO]}"}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{Name: "tools", Image: toolbox,
				Command:         []string{"/bin/sh", "-c", "echo beside; while true; do sleep 1; done"},
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(65532))}}}, // Some templates say it here.
		}},
	}
	for _, c := range change {
		c(&made.Template.Spec)
	}
	w.create(made)
}

// works is a model that makes these calls one after the other, and then says that it is done.
func works(calls ...modelserver.ToolCall) modelserver.Script {
	var script modelserver.Script
	for i, call := range calls {
		script.Rules = append(script.Rules, modelserver.Rule{Match: modelserver.Match{ToolResults: new(i)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: []modelserver.ToolCall{call}}}}})
	}
	script.Rules = append(script.Rules, modelserver.Rule{
		Reply: say("Done.")})
	return script
}

func callOf(name string, arguments map[string]any) modelserver.ToolCall {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return modelserver.ToolCall{Name: name, Arguments: raw}
}

// results are those of the chat's calls, in their order.
func (w *world) results(chat string) (results []v1beta1.ToolResult) {
	w.t.Helper()
	for _, m := range w.history(chat) {
		for i := range m.Spec.Parts {
			if r := m.Spec.Parts[i].ToolResult; r != nil {
				results = append(results, *r)
			}
		}
	}
	return results
}

func (w *world) workspace(name string) *v1beta1.Workspace {
	w.t.Helper()
	var ws v1beta1.Workspace
	if err := c.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, &ws); err != nil {
		w.t.Fatalf("reading workspace %s: %v", name, err)
	}
	return &ws
}

func TestAModelWorksInAWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(
		callOf("write_file", map[string]any{"path": "greet.sh", "content": "echo hello, $WHO\nexit 3\n"}),
		callOf("execute", map[string]any{"command": "sh greet.sh"}),
		callOf("edit_files", map[string]any{"edits": []map[string]any{
			{"path": "greet.sh", "old_text": "exit 3", "new_text": "exit 0"}}}),
		callOf("execute", map[string]any{"command": "sh greet.sh; id -u; ls -A"}),
		callOf("execute", map[string]any{"command": "while true; do echo tick; sleep 1; done &"}),
		callOf("process_list", map[string]any{}),
		// p1 is what the template runs.
		callOf("execute", map[string]any{
			"command": "setsid env -i sh -c 'exec sleep 300' >/dev/null 2>&1 & echo escaped"}),
		callOf("process_list", map[string]any{}),
		callOf("process_signal", map[string]any{"process_id": "p5", "signal": "kill"}),
		callOf("execute", map[string]any{"command": "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 30[0]'"}),
		callOf("search_files", map[string]any{"pattern": "hello"}),
		callOf("read_file", map[string]any{"path": "../../etc/passwd"}),
	))
	w.template("shell")
	chat := &v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Greet them.",
		Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell",
			Parameters: []v1beta1.WorkspaceParameter{{Name: "who", Value: "everybody; exit 9"}}}}}}
	w.create(chat)
	w.ready("c", 26)
	for i, want := range []string{"greet.sh", `"exit_code":3`, "+exit 0", "hello, everybody; exit 9", "background_process_id",
		"while true", `escaped\n`, `"descendants":[{"pid":`, `"state":"exited"`, `"output":"0\n"`, "greet.sh", "outside"} {
		if got := w.results("c")[i]; !strings.Contains(got.Output, want) || got.IsError != (want == "outside") {
			t.Errorf("result %d of %s is %q (an error: %t), want %q in it", i, got.Name, got.Output, got.IsError, want)
		}
	}
	check.Contains(t, w.results("c")[3].Output, "65532")
	ws := w.workspace("c")
	if ws.Status.Phase != v1beta1.WorkspacePhaseReady || ws.Status.Directory != "/workspace" ||
		!meta.IsStatusConditionTrue(ws.Status.Conditions, v1beta1.ConditionReady) {
		t.Errorf("the workspace is %+v", ws.Status)
	}
	check.OK(t, c.Delete(t.Context(), chat))
	w.eventually("nothing of the workspace is left", func() bool {
		var pods corev1.PodList
		return c.List(t.Context(), &pods, client.InNamespace(w.ns),
			client.MatchingLabels{"parley.dev/component": "workspace"}) == nil && len(pods.Items) == 0
	})
}

func TestProcessesOfRootDoNotEscapeTheirCall(t *testing.T) {
	t.Parallel()
	for name, hostUsers := range map[string]bool{"the node's users": true, "users of its own": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, works(
				callOf("execute", map[string]any{
					"command": "id -u; setsid env -i sh -c '(exec sleep 300) &' >/dev/null 2>&1; kill -9 $PPID; sleep 300"}),
				callOf("execute", map[string]any{
					"command": "setsid env -i sh -c '(exec sleep 300) &' >/dev/null 2>&1; echo left"}),
				callOf("process_list", map[string]any{}),
				callOf("process_signal", map[string]any{"process_id": "p3", "signal": "kill"}),
				callOf("execute", map[string]any{"command": "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 30[0]'"}),
			))
			w.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}},
				`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`)
			w.template("shell", func(s *corev1.PodSpec) {
				s.HostUsers = &hostUsers
				s.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(false)}
			})
			w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Try to escape.",
				Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}}})
			w.ready("c", 12)
			for i, want := range []string{`"output":"0\n"`, `left\n`, `"descendants":[{"pid":`,
				`"state":"exited"`, `"output":"0\n"`} {
				if got := w.results("c")[i]; !strings.Contains(got.Output, want) {
					t.Errorf("result %d of %s is %q, want %q in it", i, got.Name, got.Output, want)
				}
			}
		})
	}
}

func TestCallsReportWhyWorkspaceCannotBeCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(callOf("execute", map[string]any{"command": "true"})))
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Work.",
		Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "none"}}}})
	w.ready("c", 4)
	if got := w.results("c")[0]; !got.IsError || !strings.Contains(got.Output, "there is no PodTemplate none") {
		t.Errorf("the result is %+v", got)
	}
}
