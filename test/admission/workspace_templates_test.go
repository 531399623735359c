// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/pods/podspec"
)

// toolTemplate is a workspace template of some name, changed.
func toolTemplate(change ...func(*corev1.PodTemplate)) *corev1.PodTemplate {
	t := &corev1.PodTemplate{ObjectMeta: meta("tools"), Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "golang:1"}}}}}
	t.Labels = map[string]string{v1alpha1.LabelWorkspaceTemplate: "true"}
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
			t.Labels[v1alpha1.LabelWorkspaceTemplate] = "True"
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
