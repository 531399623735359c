// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/check"
)

// withInitContainer is the pod of a workspace as the manager makes it with --workspace-agent=InitContainer.
func (w *world) withInitContainer() *corev1.Pod {
	w.t.Helper()
	ws := &v1alpha1.Workspace{ObjectMeta: w.meta("c"), Spec: v1alpha1.WorkspaceSpec{Source: v1alpha1.WorkspaceSource{
		PodTemplateRef: &v1alpha1.WorkspaceTemplateReference{Name: "shell"}}}}
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
	w.create(&v1alpha1.Chat{ObjectMeta: w.meta("c"), Spec: v1alpha1.ChatSpec{Prompt: "Work.",
		Workspace: &v1alpha1.WorkspaceSource{PodRef: &v1alpha1.WorkspacePodReference{Name: pod.Name}}}})
	w.ready("c", 8)
	results := w.results("c")
	got := w.executed(results[1])
	if !strings.HasPrefix(got.Output, "hello\n") ||
		!strings.Contains(got.Output, "Read-only") || got.ExitCode == nil || *got.ExitCode != 3 {
		t.Errorf("the command says %+v", got)
	}
	check.Contains(t, results[2].Output, "echo beside")
}
