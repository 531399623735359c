// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/workspace/protocol"
)

// forced deletes an object without waiting for anybody.
func forced(t *testing.T, o client.Object) {
	t.Helper()
	if err := client.IgnoreNotFound(c.Delete(t.Context(), o, client.GracePeriodSeconds(0))); err != nil {
		t.Fatal(err)
	}
}

// killGenerator kills the generator of an attempt as soon as that has begun, or as soon as there is one. Where it has
// been killed before, its pod goes with it, as when a node is lost: the kubelet starts a container again at once the
// first time, and then after waits that grow from 10 s on. Of one step only the pod is removed, and the process ends
// when the kubelet sees to that.
func killGenerator(w *world, s *step) {
	pod, gone := &corev1.Pod{ObjectMeta: w.meta(s.chat.Status.Generation.Pod)}, false
	w.eventually("the generator is killed, or its pod is gone", func() bool {
		gone = w.gone(pod) // It went with the step before, and takes this attempt along.
		return gone || s.number == ofTheTest || killProgram(w.t, pod, generator) > 0
	})
	if s.killed = true; !gone && (s.number == ofTheTest || restarted(pod)) {
		forced(w.t, pod)
	}
}

// restarted reports whether a container of the pod has been started again.
func restarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses,
		func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
}

// generator and agentInit begin the command lines of the generator and of a workspace's agent.
const generator, agentInit = "/generator ", protocol.AgentDir + "/workspace-agent init "

// killTheManager kills the manager, and has another pod take its place: see killGenerator.
func killTheManager(w *world, s *step) {
	s.killed = true
	pods := managers(w.t)
	if len(pods) == 0 {
		w.t.Fatal("there is no manager")
	}
	for i := range pods {
		if running(&pods[i], "manager") {
			kill(w.t, pods[i].Namespace, pods[i].Name, "manager")
		}
		forced(w.t, &pods[i])
	}
	w.eventually("another manager is at work", func() bool {
		now := managers(w.t)
		return len(now) == 1 && now[0].UID != pods[0].UID && running(&now[0], "manager")
	})
}

func managers(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace("parley-system"),
		client.MatchingLabels{"app.kubernetes.io/component": "manager"}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// running reports whether a container of the pod runs.
func running(pod *corev1.Pod, container string) bool {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == container {
			return s.State.Running != nil
		}
	}
	return false
}

// killKubelet kills the kubelet while the model's first test runs, and waits until the node is ready again.
func killKubelet(w *world, s *step) {
	if s.killed = s.number == ofTheTest; !s.killed {
		return
	}
	w.eventually("the command runs", func() bool {
		pod := w.housing()
		begun, err := w.exec(pod.Name, v1alpha1.WorkspaceContainer, "cat /workspace/begun")
		return err == nil && begun == "test\n"
	})
	restart := exec.CommandContext(w.t.Context(), "/bin/sh", "-c", os.Getenv("DEVCLUSTER")+" restart kubelet")
	if out, err := restart.CombinedOutput(); err != nil {
		w.t.Fatalf("restarting the kubelet: %v\n%s", err, out)
	}
}

// loseWorkspace removes the pod of the workspace before a step, while no command runs: the chat is held meanwhile.
func (w *world) loseWorkspace(name string) {
	w.t.Helper()
	chat := w.chat(name)
	w.patch(chat, `{"spec":{"suspend":true}}`)
	w.eventually("the chat is held", func() bool {
		ready := meta.FindStatusCondition(w.chat(name).Status.Conditions, v1alpha1.ConditionReady)
		return v1alpha1.ReasonOf(ready) == v1alpha1.ReasonSuspended
	})
	lost := w.housing()
	forced(w.t, lost)
	w.eventually("the workspace has another pod", func() bool {
		status := w.workspace(name).Status
		return status.Phase == v1alpha1.WorkspacePhaseReady && status.Pod.UID != string(lost.UID)
	})
	w.patch(chat, `{"spec":{"suspend":false}}`)
}
