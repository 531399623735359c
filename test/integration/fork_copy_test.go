// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// copying is a fork of chat c whose workspace begins with the files of the source's.
func copying(ns, name, message string, change ...func(*v1beta1.WorkspaceSource)) *v1beta1.Chat {
	chat := working(ns, name, change...)
	chat.Spec.Prompt, chat.Spec.Fork = "", &v1beta1.ForkSource{Chat: "c", Message: message,
		Workspace: v1beta1.ForkWorkspaceCopy}
	return chat
}

// waitForUncopied waits until the fork waits for the files of a workspace in these words.
func waitForUncopied(t *testing.T, ns, fork, words string) {
	t.Helper()
	eventually(t, fmt.Sprintf("fork %s waits for files: %s", fork, words), func() bool {
		wait := chatIn(t, ns, fork).Status.Wait
		return wait != nil && wait.For == v1beta1.WaitForWorkspace &&
			wait.Reason == string(v1beta1.ReasonForkFilesNotCopied) && strings.Contains(wait.Message, words)
	})
}

// ends makes the kubelet say how the pod of the workspace ended.
func ends(t *testing.T, w *v1beta1.Workspace, phase corev1.PodPhase, status ...corev1.ContainerStatus) {
	t.Helper()
	pod := podOf(t, w)
	pod.Status = corev1.PodStatus{Phase: phase, ContainerStatuses: status}
	check.OK(t, cluster.Client.Status().Update(t.Context(), pod))
}

func TestForkBeginsWhenFilesAreCopied(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	source := workspaceIn(t, ns, "c")
	eventually(t, "the source has a claim", func() bool { return workspaceIn(t, ns, "c").Status.Claim != "" })
	create(t, copying(ns, "f", "c-prompt"))
	w := workspaceIn(t, ns, "f")
	check.Equal(t, "copied from", string(source.UID), w.Spec.CopyFrom)
	waitForUncopied(t, ns, "f", "Copying the workspace of chat c: "+starting)
	pod := podOf(t, w)
	check.Equal(t, "source", template.Name(source), pod.Spec.Volumes[1].PersistentVolumeClaim.ClaimName)
	ends(t, w, corev1.PodFailed, corev1.ContainerStatus{Name: "parley-copy", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no space left on device"}}})
	waitForUncopied(t, ns, "f", "no space left on device. Fix that, or set spec.fork.workspace to None")
	waitForUncopied(t, ns, "f", "Copying the workspace of chat c: "+starting)
	if again := podOf(t, w); again.UID == pod.UID {
		t.Error("the pod that failed is there")
	}
	ends(t, w, corev1.PodSucceeded)
	fork := assigned(t, ns, "f", 2, 1)
	check.Equal(t, "messages of the fork", 1, len(messagesOf(t, ns, "f")))
	answers(t, fork, chattest.Works("call_1"))
	waitForHeld(t, ns, "f", "") // Its pod has no kubelet.
	if now := podOf(t, w); template.IsCopier(now) || len(now.Spec.Containers[0].VolumeMounts) < 2 {
		t.Errorf("the pod is %+v", now.Spec)
	}
	check.Equal(t, "copied from", string(source.UID), workspaceIn(t, ns, "f").Status.CopiedFrom)
}

func TestForkBeginsWithoutFilesThatCannotBeCopied(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	create(t, newChat(ns, "c", "please"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, copying(ns, "f", "c-1-1"))
	create(t, copying(ns, "g", "c-1-1", func(s *v1beta1.WorkspaceSource) { s.PodTemplateRef.Storage = nil }))
	waitForUncopied(t, ns, "f", "Chat c has no workspace of its own with files in storage")
	waitForUncopied(t, ns, "g", "The workspace of this chat has no storage to copy files to")
	check.Equal(t, "workspaces", 0, len(workspaces(t, ns)))
	for _, name := range []string{"f", "g"} {
		patch(t, newChat(ns, name, ""), `{"spec":{"fork":{"workspace":"None"}}}`)
		waitForHistory(t, ns, name, v1beta1.ChatWaiting, name+"-1-1", 2)
	}
}

func TestForkCopiesWithCorrectedWorkspace(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	eventually(t, "the source has a claim", func() bool { return workspaceIn(t, ns, "c").Status.Claim != "" })
	create(t, copying(ns, "f", "c-prompt", func(s *v1beta1.WorkspaceSource) { s.PodTemplateRef.Name = "wrong" }))
	waitForUncopied(t, ns, "f", "there is no PodTemplate wrong")
	waitForReady(t, ns, "f", metav1.ConditionFalse, v1beta1.ReasonForkFilesNotCopied)
	patch(t, newChat(ns, "f", ""), `{"spec":{"workspace":{"podTemplateRef":{"name":"go"}}}}`)
	pod := podOf(t, workspaceIn(t, ns, "f"))
	patch(t, newChat(ns, "f", ""), `{"spec":{"workspace":{"idleSeconds":60}}}`)
	eventually(t, "the pod is replaced", func() bool { return podOf(t, workspaceIn(t, ns, "f")).UID != pod.UID })
}

func TestForkCancelsTheCopyOfFiles(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	eventually(t, "the source has a claim", func() bool { return workspaceIn(t, ns, "c").Status.Claim != "" })
	create(t, copying(ns, "f", "c-prompt"))
	waitForUncopied(t, ns, "f", starting)
	patch(t, newChat(ns, "f", ""), `{"spec":{"fork":{"workspace":null}}}`)
	assigned(t, ns, "f", 2, 1)
	eventually(t, "the workspace has its own pod", func() bool {
		return !template.IsCopier(podOf(t, workspaceIn(t, ns, "f")))
	})
}
