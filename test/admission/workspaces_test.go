// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// workspace is that of a chat of its name.
func workspace() *v1alpha1.Workspace {
	w := &v1alpha1.Workspace{ObjectMeta: meta("work")}
	w.Spec = v1alpha1.WorkspaceSpec{ChatRef: v1alpha1.ChatReference{Name: w.Name}, Source: v1alpha1.WorkspaceSource{
		PodTemplateRef: &v1alpha1.WorkspaceTemplateReference{Name: "go"}}}
	return w
}

// needs says of the workspace that it is needed, as the manager does.
func needs(w *v1alpha1.Workspace) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		var now v1alpha1.Workspace
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), &now); err != nil {
			return err
		}
		now.Spec.NeededAt = new(metav1.NowMicro())
		return c.Update(ctx, &now)
	}
}

func gets(o client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	}
}

func listsAll(l client.ObjectList) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.List(ctx, l.DeepCopyObject().(client.ObjectList), client.InNamespace(ns))
	}
}

const (
	suspends = `{"spec":{"suspend":true}}`
	readies  = `{"status":{"phase":"Ready"}}`
)

func TestManagerCreatesWorkspacesAndUpdatesTheirStatus(t *testing.T) {
	t.Parallel()
	w := workspace()
	mustCreate(t, manager, w)
	const onlyManager = "only Parley's manager writes the status of workspaces: change the spec, and the status follows"
	writes := []write{
		{manager, "says that it is needed", needs(w), ""},
		{manager, "says how it stands", patchesStatus(w, readies), ""},
		{manager, "gives it to another chat", moves(w), "chatRef cannot change: a workspace belongs to one chat for ever"},
		{manager, "deletes it, though it goes with its chat", deletes(w), noRight},
	}
	for _, who := range []actor{chatter, viewer, approver, governor, debugger, gateway, podA} {
		writes = append(writes,
			write{who, "creates one", creates(workspace()), noRight},
			write{who, "suspends one", patches(w, suspends), noRight},
			write{who, "says how one stands", patchesStatus(w, readies), noRight},
			write{who, "deletes one", deletes(w), noRight},
		)
	}
	for _, who := range []actor{administrator, root, boss, deployer, impostor} {
		own := workspace()
		writes = append(writes,
			write{who, "creates one", creates(own), ""},
			write{who, "suspends it", patches(own, suspends), ""},
			write{who, "gives it to another chat", moves(own), "chatRef cannot change"},
			write{who, "says how it stands", patchesStatus(own, readies), onlyManager},
			write{who, "deletes it", deletes(own), ""},
		)
	}
	try(t, writes)
}

func TestUsersMayOnlySuspendWorkspaces(t *testing.T) {
	t.Parallel()
	w := workspace()
	mustCreate(t, manager, w)
	const suspendAlone = "of a Workspace, people change spec.suspend alone"
	try(t, []write{
		{owner, "creates one", creates(workspace()), noRight},
		{owner, "suspends one", patches(w, suspends), ""},
		{owner, "lets it run", patches(w, `{"spec":{"suspend":false}}`), ""},
		{owner, "labels it", patches(w, `{"metadata":{"labels":{"team":"a"}}}`), ""},
		{owner, "has it made from another template", patches(w, `{"spec":{"source":{"podTemplateRef":{"name":"c"}}}}`),
			suspendAlone},
		{owner, "gives a parameter", patches(w,
			`{"spec":{"source":{"podTemplateRef":{"parameters":[{"name":"a","value":"b"}]}}}}`), suspendAlone},
		{owner, "says that it is needed", needs(w), suspendAlone},
		{owner, "gives it to another chat", moves(w), "chatRef cannot change"},
		{owner, "takes it from its chat", patches(w, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod",
			"name":"a","uid":"b"}]}}`), suspendAlone},
		{owner, "keeps it from being deleted", patches(w, `{"metadata":{"finalizers":["example.com/keep"]}}`), suspendAlone},
		{owner, "says how it stands", patchesStatus(w, readies), noRight},
		{owner, "deletes it", deletes(w), noRight},
	})
}

// moves makes the workspace another chat's.
func moves(w *v1alpha1.Workspace) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		var now v1alpha1.Workspace
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), &now); err != nil {
			return err
		}
		now.Spec.ChatRef.Name = "another"
		return c.Update(ctx, &now)
	}
}

func TestWhoReadsChatsReadsWorkspaces(t *testing.T) {
	t.Parallel()
	w := workspace()
	mustCreate(t, manager, w)
	all := &v1alpha1.WorkspaceList{}
	try(t, []write{
		{chatter, "reads one", gets(w), ""},
		{chatter, "lists them", listsAll(all), ""},
		{owner, "lists them", listsAll(all), ""},
		{viewer, "lists them", listsAll(all), ""},
		{podA, "reads one that it knows the name of", gets(w), ""},
		{podA, "lists them", listsAll(all), noRight},
		{podC, "reads one", gets(w), noRight},
		{approver, "reads one", gets(w), noRight},
		{debugger, "reads one", gets(w), noRight},
		{gateway, "reads one", gets(w), noRight},
	})
}

func TestStatusIsIgnoredOnWorkspaceCreation(t *testing.T) {
	t.Parallel()
	w := workspace()
	w.Status = v1alpha1.WorkspaceStatus{Phase: v1alpha1.WorkspacePhaseReady,
		Pod: &v1alpha1.WorkspacePod{Name: "evil", UID: "1", Address: "10.6.6.6"}}
	mustCreate(t, boss, w)
	if w.Status.Phase != "" || w.Status.Pod != nil || w.Status.ObservedGeneration != -1 {
		t.Errorf("created with the status %+v", w.Status)
	}
}
