// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestAFamilySharesTheWorkspaceOfItsRoot(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	root := working(ns, "root")
	root.Spec.Limits = &v1beta1.ChatLimits{MaxDepth: new(int32(3))}
	create(t, root)
	begun := assigned(t, ns, "root", 1, 1)
	create(t, subChat(ns, "sub", "root"))
	create(t, subChat(ns, "deep", "sub"))
	for _, name := range []string{"sub", "deep"} {
		answers(t, assigned(t, ns, name, 1, 1), chattest.Works("call_1"))
		waitForHeld(t, ns, name, starting)
	}
	runs(t, workspaceIn(t, ns, "root"))
	wantTools(t, ns, "sub", 2)
	wantTools(t, ns, "deep", 2)
	answers(t, begun, chattest.Works("call_1"))
	wantTools(t, ns, "root", 2)
	check.Equal(t, "there are the workspaces", []string{"root"}, workspaces(t, ns))
}

// The workspace of another chat has the name that this one's would have: it is not this one's to use.
func TestForeignWorkspaceOfSameNameIsIgnored(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	strangers := &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"},
		Spec: v1beta1.WorkspaceSpec{ChatRef: v1beta1.ChatReference{Name: "other"},
			Source: *working(ns, "other").Spec.Workspace}}
	create(t, strangers)
	podOf(t, strangers)
	worksIn(t, working(ns, "c"))
	chat := wantTools(t, ns, "c", 2)
	w := workspaceIn(t, ns, "c")
	if w.UID != strangers.UID || w.Generation != 1 || !slices.Equal(workspaces(t, ns), []string{"c"}) {
		t.Errorf("the stranger's workspace is %+v, and there are %v", w, workspaces(t, ns))
	}
	remove(t, strangers)
	answers(t, chat, chattest.Results("call_1"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Works("call_2"))
	waitForHeld(t, ns, "c", starting)
}

func TestChatWaitsForTerminatingForeignWorkspace(t *testing.T) {
	ns := namespace(t)
	create(t, toolTemplate(ns))
	strangers := &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c",
		Finalizers: []string{"example.com/kept"}}, Spec: v1beta1.WorkspaceSpec{
		ChatRef: v1beta1.ChatReference{Name: "other"}, Source: *working(ns, "other").Spec.Workspace}}
	create(t, strangers)
	remove(t, strangers)
	worksIn(t, working(ns, "c"))
	waitForHeld(t, ns, "c", "that of a former chat of this name is being removed")
	forgetAlarms(t, ns, "c", "one")
	patch(t, strangers, `{"metadata":{"finalizers":null}}`)
	waitForHeld(t, ns, "c", starting)
}

// The garbage collector, which does not run here, removes the workspace of a chat that is gone some time afterwards.
func TestChatWaitsForDeletionOfStaleWorkspace(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	waitForHeld(t, ns, "c", starting)
	former := workspaceIn(t, ns, "c")
	pod, claim := podOf(t, former), &corev1.PersistentVolumeClaim{}
	of(t, former, claim)
	for _, o := range []metav1.Object{former, pod, claim} {
		if owner := metav1.GetControllerOf(o); owner == nil || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
			t.Errorf("%s would stay: its owner is %+v", o.GetName(), owner)
		}
	}
	remove(t, newChat(ns, "c", ""))
	waitGone(t, ns, "c-1-1")
	worksIn(t, working(ns, "c"))
	waitForHeld(t, ns, "c", "that of a former chat of this name is being removed")
	remove(t, former)
	waitForHeld(t, ns, "c", starting)
	now := workspaceIn(t, ns, "c")
	if now.UID == former.UID || !metav1.IsControlledBy(now, chatIn(t, ns, "c")) || template.Name(now) == pod.Name {
		t.Errorf("the workspace is %+v", now.ObjectMeta)
	}
	runs(t, now)
	wantTools(t, ns, "c", 2)
}
