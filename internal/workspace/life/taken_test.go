// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
)

// of is a workspace of another chat, with a UID of its own.
func of(chat string, uid types.UID) func(*v1alpha1.Workspace) {
	return func(w *v1alpha1.Workspace) { w.Name, w.UID, w.Spec.ChatRef.Name = chat, uid, chat }
}

// saidTaken is a status that says that the pod of that UID is another's.
func saidTaken(uid string) func(*v1alpha1.Workspace) {
	return func(w *v1alpha1.Workspace) {
		said(metav1.ConditionFalse, v1alpha1.ReasonPodTaken, time.Hour)(w)
		w.Status.Phase, w.Status.Pod = v1alpha1.WorkspacePhaseFailed, &v1alpha1.WorkspacePod{Name: "pod", UID: uid}
	}
}

func TestPodNamedBySeveralWorkspacesServesOneChat(t *testing.T) {
	other := func(change ...func(*v1alpha1.Workspace)) []v1alpha1.Workspace {
		return []v1alpha1.Workspace{*workspace(append([]func(*v1alpha1.Workspace){named, of("first", "x")}, change...)...)}
	}
	later := func(w *v1alpha1.Workspace) { w.CreationTimestamp = ago(time.Second) }
	its := outcome{Nothing, v1alpha1.WorkspacePhaseReady, metav1.ConditionTrue, v1alpha1.ReasonWorkspaceReady, "pod",
		29 * time.Minute}
	another := func(says string) outcome {
		return outcome{Nothing, v1alpha1.WorkspacePhaseFailed, metav1.ConditionFalse, v1alpha1.ReasonPodTaken, says, 0}
	}
	theirs := another("chat first")
	for name, c := range map[string]struct {
		own    *v1alpha1.Workspace
		others []v1alpha1.Workspace
		want   outcome
	}{
		"nobody else names it":          {workspace(named), nil, its},
		"another one named it before":   {workspace(named), other(old), theirs},
		"another one names it later":    {workspace(named), other(later), its},
		"another one works in it":       {workspace(named), other(later, wasReady), theirs},
		"this one works in it":          {workspace(named, wasReady), other(old), its},
		"another one is suspended":      {workspace(named), other(later, wasReady, suspended), theirs},
		"both work in it, as it seemed": {workspace(named, wasReady), other(old, wasReady), theirs},
		"at the same moment, by UID":    {workspace(named), other(), its},
		"another one, of a former pod":  {workspace(named), other(old, saidTaken("former")), theirs},
		"this one works in it, and another has said that it is not its own": {workspace(named, wasReady),
			other(old, saidTaken("p")), its},
		"another one has said that it is of somebody who is gone": {workspace(named), other(old, saidTaken("p")),
			another("recreate it")},
		"the one that had it is gone": {workspace(named, saidTaken("p")), nil, another("recreate it")},
		"the one that had it is gone, and there is a later one": {workspace(named, saidTaken("p")), other(later),
			another("recreate it")},
		"it was recreated": {workspace(named, saidTaken("former")), nil, its},
	} {
		t.Run(name, func(t *testing.T) {
			facts := Facts{Workspace: c.own, Sharers: c.others, Now: now,
				Pod: pod(time.Hour, strangers, ready(corev1.ConditionTrue, time.Minute))}
			c.want.check(t, Decide(&facts))
			if !facts.NamesPod() {
				t.Error("the status does not name the pod, so that this is forgotten")
			}
		})
	}
}
