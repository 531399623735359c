// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
)

// workspace is that of a chat of its name.
func workspace() *v1beta1.Workspace {
	w := &v1beta1.Workspace{ObjectMeta: meta("work")}
	w.Spec = v1beta1.WorkspaceSpec{ChatRef: v1beta1.ChatReference{Name: w.Name}, Source: v1beta1.WorkspaceSource{
		PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}}
	return w
}

// needs says of the workspace that it is needed, as the manager does.
func needs(w *v1beta1.Workspace) action {
	return updates(w, func(now *v1beta1.Workspace) { now.Spec.NeededAt = new(metav1.NowMicro()) })
}

func gets(o client.Object) action {
	return func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	}
}

func listsAll(l client.ObjectList) action {
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
		{owner, "has the files of another one copied", patches(w, `{"spec":{"copyFrom":"another"}}`), suspendAlone},
		{owner, "gives it to another chat", moves(w), "chatRef cannot change"},
		{owner, "takes it from its chat", patches(w, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod",
			"name":"a","uid":"b"}]}}`), suspendAlone},
		{owner, "keeps it from being deleted", patches(w, `{"metadata":{"finalizers":["example.com/keep"]}}`), suspendAlone},
		{owner, "says how it stands", patchesStatus(w, readies), noRight},
		{owner, "deletes it", deletes(w), noRight},
	})
}

// moves makes the workspace another chat's.
func moves(w *v1beta1.Workspace) action {
	return updates(w, func(now *v1beta1.Workspace) { now.Spec.ChatRef.Name = "another" })
}

func TestWhoReadsChatsReadsWorkspaces(t *testing.T) {
	t.Parallel()
	w := workspace()
	mustCreate(t, manager, w)
	all := &v1beta1.WorkspaceList{}
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
	w.Status = v1beta1.WorkspaceStatus{Phase: v1beta1.WorkspacePhaseReady,
		Pod: &v1beta1.WorkspacePod{Name: "evil", UID: "1", Address: "10.6.6.6"}}
	mustCreate(t, boss, w)
	if w.Status.Phase != "" || w.Status.Pod != nil || w.Status.ObservedGeneration != -1 {
		t.Errorf("created with the status %+v", w.Status)
	}
}

// toolTemplate is a workspace template of some name, changed.
func toolTemplate(change ...func(*corev1.PodTemplate)) *corev1.PodTemplate {
	t := &corev1.PodTemplate{ObjectMeta: meta("tools"), Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "golang:1"}}}}}
	t.Labels = map[string]string{v1beta1.LabelWorkspaceTemplate: "true"}
	for _, c := range change {
		c(t)
	}
	return t
}

func unmarked(t *corev1.PodTemplate) { t.Labels = nil }

// ofTheModel makes the template's pods run as generation pods do.
func ofTheModel(t *corev1.PodTemplate) { t.Template.Spec.ServiceAccountName = podspec.ServiceAccount }

const (
	marks   = `{"metadata":{"labels":{"parley.dev/workspace-template":"true"}}}`
	unmarks = `{"metadata":{"labels":{"parley.dev/workspace-template":null}}}`
)

func TestWhoWritesAWorkspaceTemplateMayCreatePods(t *testing.T) {
	t.Parallel()
	const noPods = "templater may not create pods in namespace " + ns + ": the manager makes pods of a PodTemplate " +
		"with the label parley.dev/workspace-template=true, so only those write one who may create pods themselves"
	own, marked := toolTemplate(unmarked), toolTemplate()
	mustCreate(t, templater, own)
	mustCreate(t, boss, marked)
	const (
		image   = `{"template":{"spec":{"containers":[{"name":"main","image":"golang:2"}]}}}`
		another = `{"template":{"spec":{"containers":[{"name":"main","image":"golang:3"}]}}}`
		both    = `{"metadata":{"labels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"main","image":"b"}]}}}`
	)
	writes := []write{
		{templater, "creates one", creates(toolTemplate()), noPods},
		{templater, "applies one", applies(toolTemplate()), noPods},
		{templater, "creates one whose mark is none", creates(toolTemplate(func(t *corev1.PodTemplate) {
			t.Labels[v1beta1.LabelWorkspaceTemplate] = "True"
		})), ""},
		{templater, "marks one", patches(own, marks), noPods},
		{templater, "changes one that is not marked", patches(own, image), ""},
		{templater, "changes the image", patches(marked, image), noPods},
		{templater, "changes the labels of the pods", patches(marked, `{"template":{"metadata":{"labels":{"a":"b"}}}}`),
			noPods},
		{templater, "declares a parameter",
			patches(marked, `{"metadata":{"annotations":{"parley.dev/parameters":"- {name: a, places: [env/A]}"}}}`), noPods},
		{templater, "moves the files", patches(marked, `{"metadata":{"annotations":{"parley.dev/directory":"/etc"}}}`),
			noPods},
		{templater, "changes another label and the image at once", patches(marked, both), noPods},
		{templater, "describes it", patches(marked, `{"metadata":{"annotations":{"parley.dev/description":"Go."}}}`), ""},
		{templater, "labels it otherwise", patches(marked, `{"metadata":{"labels":{"a":"b"}}}`), ""},
		{templater, "takes the mark off", patches(marked, unmarks), ""},
		{templater, "changes what is no template for workspaces any more", patches(marked, image), ""},
		{templater, "marks it again", patches(marked, marks), noPods},
		{boss, "marks it again", patches(marked, marks), ""},
		{boss, "changes the image", patches(marked, another), ""},
		{templater, "deletes it", deletes(marked), ""},
	}
	for _, who := range []actor{chatter, owner, viewer, approver, gateway, podA, manager} {
		writes = append(writes, write{who, "creates one", creates(toolTemplate()), noRight},
			write{who, "marks one", patches(own, marks), noRight})
	}
	try(t, writes)
}

// Security (a hostile workspace): cannot run as the model, or read a key. Also TestTheManagersWorkspacesAreWhatTheySay
// of test/admission.
func TestNoWorkspaceTemplateRunsAsTheModel(t *testing.T) {
	t.Parallel()
	const noAccount = "a workspace does not run with the service account parley-generation"
	byTheOldField := func(t *corev1.PodTemplate) { t.Template.Spec.DeprecatedServiceAccount = podspec.ServiceAccount }
	for _, who := range []actor{boss, root, administrator, impostor} {
		later := toolTemplate(unmarked, ofTheModel)
		mustCreate(t, who, later)
		sound := toolTemplate()
		mustCreate(t, who, sound)
		try(t, []write{
			{who, "creates one", creates(toolTemplate(ofTheModel)), noAccount},
			{who, "creates one by the field's old name", creates(toolTemplate(byTheOldField)), noAccount},
			{who, "marks one", patches(later, marks), noAccount},
			{who, "gives one the account",
				patches(sound, `{"template":{"spec":{"serviceAccountName":"parley-generation"}}}`), noAccount},
			{who, "gives one another account", patches(sound, `{"template":{"spec":{"serviceAccountName":"builder"}}}`), ""},
		})
	}
}
