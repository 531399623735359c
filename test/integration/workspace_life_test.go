// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestChatReportsKubeletMessageOfPod(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	w := workspaceIn(t, ns, "c")
	pod := podOf(t, w)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such tag"}}}}
	check.OK(t, cluster.Client.Status().Update(t.Context(), pod))
	waitForHeld(t, ns, "c", "container main: ErrImagePull no such tag")
}

func TestTerminatedPodIsReplacedAndFilesRemain(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	w := workspaceIn(t, ns, "c")
	runs(t, w)
	wantTools(t, ns, "c", 2)
	claim, _ := of(t, w, &corev1.PersistentVolumeClaim{})
	pod := podOf(t, w)
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	check.OK(t, cluster.Client.Status().Update(t.Context(), pod))
	eventually(t, "there is another pod", func() bool { return podOf(t, w).UID != pod.UID })
	waitForWorkspace(t, w, metav1.ConditionUnknown, v1beta1.ReasonPodStarting, starting)
	if same, there := of(t, w, &corev1.PersistentVolumeClaim{}); !there || same.UID != claim.UID {
		t.Errorf("the claim is %+v", same)
	}
}

// gonePod reports whether the workspace has no pod.
func gonePod(t *testing.T, w *v1beta1.Workspace) bool {
	t.Helper()
	_, there := of(t, w, &corev1.Pod{})
	return !there
}

func TestSuspendedWorkspaceHasNoPodAndBlocksNothing(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	waitForHeld(t, ns, "c", starting)
	w := workspaceIn(t, ns, "c")
	patch(t, w, `{"spec":{"suspend":true}}`)
	chat := wantTools(t, ns, "c", 2) // Their results say that it is suspended.
	st := waitForWorkspace(t, w, metav1.ConditionTrue, v1beta1.ReasonWorkspaceStopped, "until spec.suspend is false").
		Status
	if !gonePod(t, w) || st.Phase != v1beta1.WorkspacePhaseStopped || st.Pod != nil || st.Claim == "" {
		t.Errorf("the status is %+v", st)
	}
	answers(t, chat, chattest.Results("call_1"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Works("call_2"))
	chat = wantTools(t, ns, "c", 4) // Whoever needs it, it has no pod.
	if !gonePod(t, w) {
		t.Error("it has a pod")
	}
	patch(t, w, `{"spec":{"suspend":false}}`)
	waitForWorkspace(t, w, metav1.ConditionUnknown, v1beta1.ReasonPodStarting, starting)
	answers(t, chat, chattest.Results("call_2"))
	answers(t, assigned(t, ns, "c", 5, 1), chattest.Works("call_3"))
	waitForHeld(t, ns, "c", starting)
	runs(t, w)
	wantTools(t, ns, "c", 6)
}

func TestIdleWorkspaceStopsAndRestartsOnNextCall(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c", func(s *v1beta1.WorkspaceSource) { s.IdleSeconds = new(int32(1)) }))
	w := workspaceIn(t, ns, "c")
	runs(t, w)
	answers(t, wantTools(t, ns, "c", 2), chattest.Results("call_1"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForWorkspace(t, w, metav1.ConditionTrue, v1beta1.ReasonWorkspaceStopped, "it is idle")
	claim, there := of(t, w, &corev1.PersistentVolumeClaim{})
	if !there || !gonePod(t, w) {
		t.Errorf("its pod is gone: %t, its claim is there: %t", gonePod(t, w), there)
	}
	create(t, say(ns, "c", "again"))
	answers(t, assigned(t, ns, "c", 5, 1), chattest.Works("call_2"))
	waitForHeld(t, ns, "c", starting)
	runs(t, w)
	wantTools(t, ns, "c", 6)
	if same, _ := of(t, w, &corev1.PersistentVolumeClaim{}); same.UID != claim.UID {
		t.Error("its files are gone")
	}
}

func TestTerminatingClaimIsReplacedBeforePodCreation(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	w := workspaceIn(t, ns, "c")
	podOf(t, w)
	patch(t, w, `{"spec":{"suspend":true}}`)
	waitForWorkspace(t, w, metav1.ConditionTrue, v1beta1.ReasonWorkspaceStopped, "")
	old, _ := of(t, w, &corev1.PersistentVolumeClaim{})
	remove(t, old) // As long as it has its finalizer it is there, but no pod can be scheduled with it.
	patch(t, w, `{"spec":{"suspend":false}}`)
	waitForWorkspace(t, w, metav1.ConditionUnknown, v1beta1.ReasonPodStarting, "its storage is being removed")
	if !gonePod(t, w) {
		t.Error("there is a pod that cannot be scheduled")
	}
	patch(t, old, `{"metadata":{"finalizers":null}}`)
	waitForWorkspace(t, w, metav1.ConditionUnknown, v1beta1.ReasonPodStarting, starting)
	if claim, there := of(t, w, &corev1.PersistentVolumeClaim{}); !there || claim.UID == old.UID {
		t.Errorf("the claim is %+v", claim)
	}
}
