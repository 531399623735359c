// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestNewRefusesAnUnknownWorkspaceTemplate(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	asAdmin := func(args ...string) *command { return p.start("certificate", "", append([]string{"new"}, args...)...) }
	asAdmin("a", "--workspace", "go").exits(exitUsage, "has no workspace template go: there is none")
	p.create(&corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "shell",
		Labels:      map[string]string{v1beta1.LabelWorkspaceTemplate: "true"},
		Annotations: map[string]string{v1beta1.AnnotationDescription: "A shell."}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}})
	asAdmin("a", "--workspace", "go").exits(exitUsage, "has no workspace template go: there is shell")
	asAdmin("a", "--workspace-storage").exits(exitUsage, "--workspace names")
	asAdmin("a", "--workspace", "shell", "--workspace-storage").succeeds()
	chat := &v1beta1.Chat{ObjectMeta: p.meta("a")}
	p.get(chat)
	check.Equal(t, "storage", true, chat.Spec.Workspace.HasStorage())
	p.run("new", "b", "--workspace", "other").succeeds() // Who may not list templates finds out later.
	check.Equal(t, "completion", "shell\tA shell.\n:4\n", p.completed("certificate", "new --workspace |"))
}
