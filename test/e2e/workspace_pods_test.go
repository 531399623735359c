// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// TestConcurrentCommandsOfTwentyChatsStayIsolated: each chat has a workspace of its own, and its model makes ten
// calls in one reply.
func TestConcurrentCommandsOfTwentyChatsStayIsolated(t *testing.T) {
	const chats, commands = 20, 10
	var calls []modelserver.ToolCall
	for i := range commands {
		calls = append(calls, callOf("execute", map[string]any{"timeout": 80,
			"command": fmt.Sprintf("echo $WHO begins %d | tee out-%d; sleep 1; cat out-%d; ls | wc -l", i, i, i)}))
	}
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: calls}}}},
		{Reply: say("Done.")},
	}})
	w.template("shell")
	for n := range chats {
		name := fmt.Sprintf("c-%d", n)
		w.create(&v1beta1.Chat{ObjectMeta: w.meta(name), Spec: v1beta1.ChatSpec{Prompt: "Work.",
			Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell",
				Parameters: []v1beta1.WorkspaceParameter{{Name: "who", Value: name}}}}}})
	}
	for n := range chats {
		name := fmt.Sprintf("c-%d", n)
		w.ready(name, 4)
		results := w.results(name)
		if len(results) != commands {
			t.Errorf("chat %s has %d results", name, len(results))
			continue
		}
		for i, got := range results {
			line := fmt.Sprintf("%s begins %d\\n", name, i)
			if strings.Count(got.Output, line) != 2 || !strings.Contains(got.Output, `"exit_code":0`) {
				t.Errorf("result %d of chat %s is %s", i, name, got.Output)
			}
		}
	}
	t.Run("in bounded memory", func(t *testing.T) {
		localnode.Needed(t)
		w.expectPeak(t, podspec.ComponentGeneration, generator, 96)
		w.expectPeak(t, podspec.ComponentWorkspace, agentInit, 32)
	})
}

// withInitContainer is the pod of a workspace as the manager makes it with --workspace-agent=InitContainer.
func (w *world) withInitContainer() *corev1.Pod {
	w.t.Helper()
	ws := &v1beta1.Workspace{ObjectMeta: w.meta("c"), Spec: v1beta1.WorkspaceSpec{Source: v1beta1.WorkspaceSource{
		PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}}}
	ws.UID = uuid.NewUUID()
	from := &corev1.PodTemplate{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(5)),
		Containers: []corev1.Container{{Name: "tools", Image: toolbox,
			Command: []string{"/bin/sh", "-c", "echo beside; while true; do sleep 1; done"}}},
	}}}
	o, err := template.Render(ws, from, template.Settings{Image: image, Placement: template.InitContainer,
		Subject: "system:serviceaccount:" + w.ns + ":parley-generation"})
	check.OK(w.t, err)
	o.Pod.ObjectMeta = metav1.ObjectMeta{Name: "copied", Namespace: w.ns, Labels: o.Pod.Labels}
	return o.Pod
}

func TestWorkspaceRunsAgentCopiedByInitContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(
		callOf("write_file", map[string]any{"path": "greeting", "content": "hello\n"}),
		run("cat greeting; echo no >/run/parley/agent/workspace-agent || exit 3"),
		callOf("process_list", map[string]any{})))
	pod := w.withInitContainer()
	for _, v := range pod.Spec.Volumes {
		if v.Image != nil || len(pod.Spec.InitContainers) != 1 {
			t.Fatalf("the agent does not come by an init container alone: %+v", pod.Spec)
		}
	}
	w.create(pod)
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Work.",
		Workspace: &v1beta1.WorkspaceSource{PodRef: &v1beta1.WorkspacePodReference{Name: pod.Name}}}})
	w.ready("c", 8)
	results := w.results("c")
	got := w.executed(results[1])
	if !strings.HasPrefix(got.Output, "hello\n") ||
		!strings.Contains(got.Output, "Read-only") || got.ExitCode == nil || *got.ExitCode != 3 {
		t.Errorf("the command says %+v", got)
	}
	check.Contains(t, results[2].Output, "echo beside")
}

// uptime reads how long the pod's node has been up.
func (w *world) uptime(pod, command string) time.Duration {
	w.t.Helper()
	out, err := w.exec(pod, "tools", command)
	if err != nil {
		w.t.Fatalf("%s: %v", command, err)
	}
	seconds, _, _ := strings.Cut(out, " ")
	up, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		w.t.Fatalf("%s says %q", command, out)
	}
	return time.Duration(up * float64(time.Second))
}

func TestDeletedSubChatCancelsOnlyItsOwnCommand(t *testing.T) {
	const background = "while true; do sleep 1; done"
	w := newWorld(t, works(run(background+" &"),
		run("trap 'cat /proc/uptime >ended; exit 4' TERM; echo yes >begun; while true; do sleep 0.01; done")))
	w.template("shell")
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("root"), Spec: v1beta1.ChatSpec{Workspace: &v1beta1.WorkspaceSource{
		PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}}})
	sub := &v1beta1.Chat{ObjectMeta: w.meta("sub"), Spec: v1beta1.ChatSpec{
		Prompt: "Work.", ParentRef: &v1beta1.ChatReference{Name: "root"}}}
	w.create(sub)
	pod := w.has("begun", "yes\n")

	deleted := w.uptime(pod.Name, "cat /proc/uptime")
	check.OK(t, c.Delete(t.Context(), sub))
	w.eventually("the command that the sub-chat waits for has ended", func() bool {
		out, err := w.exec(pod.Name, "tools", "cat /workspace/ended")
		return err == nil && strings.HasSuffix(out, "\n")
	})
	if took := w.uptime(pod.Name, "cat /workspace/ended") - deleted; took > soon {
		t.Errorf("the command was told to end %s after the sub-chat was deleted", took)
	}

	w.script(works(callOf("process_list", map[string]any{})))
	w.say("root", "look", "What runs?")
	w.ready("root", 4)
	var list struct {
		Processes []struct {
			Command  string `json:"command"`
			State    string `json:"state"`
			ExitCode *int   `json:"exit_code"`
		} `json:"processes"`
	}
	check.OK(t, json.Unmarshal([]byte(w.results("root")[0].Output), &list))
	state := map[string]string{}
	for _, p := range list.Processes {
		state[p.Command] = p.State
		if strings.HasPrefix(p.Command, "trap") && (p.ExitCode == nil || *p.ExitCode != 4) {
			t.Errorf("the command that was waited for is %+v", p)
		}
	}
	if len(list.Processes) != 3 || state[background] != "running" { // The third is what the template runs.
		t.Errorf("the chat at the top is told %+v", list.Processes)
	}
}
