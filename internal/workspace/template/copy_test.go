// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// copies is a workspace that begins with the files of workspace 5678.
func copies() *v1beta1.Workspace {
	w := withStorage(workspace(), v1beta1.WorkspaceStorage{})
	w.Spec.CopyFrom = "5678"
	return w
}

func TestCopierHasBothClaimsAndNothingElse(t *testing.T) {
	from := podTemplate("", func(t *corev1.PodTemplate) {
		spec := &t.Template.Spec
		spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: "git"}}}}
		spec.InitContainers = []corev1.Container{{Name: "clone", Image: "git"}}
		spec.Containers = append(spec.Containers, corev1.Container{Name: "db", Image: "postgres"})
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "x"}}
		spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1000))}
		spec.NodeSelector = map[string]string{"disk": "ssd"}
	})
	o := render(t, copies(), from)
	spec := o.Pod.Spec
	check.Equal(t, "volumes", []corev1.Volume{claimVolume("parley-files", "parley-workspace-1234", false),
		claimVolume("parley-source", "parley-workspace-5678", true)}, spec.Volumes)
	if !IsCopier(o.Pod) || len(spec.Containers) != 1 || len(spec.InitContainers) != 0 {
		t.Fatalf("the pod runs %+v and %+v", spec.InitContainers, spec.Containers)
	}
	c := spec.Containers[0]
	check.Equal(t, "command", []string{"/workspace-agent", "copy-files", "/from", "/to"}, c.Command)
	if c.Image != "parley:test" || len(c.Env) != 0 || *c.SecurityContext.RunAsUser != 1000 ||
		!*c.SecurityContext.ReadOnlyRootFilesystem || !c.VolumeMounts[0].ReadOnly || len(c.VolumeMounts) != 2 {
		t.Errorf("the container is %+v", c)
	}
	if spec.RestartPolicy != corev1.RestartPolicyNever || spec.NodeSelector["disk"] != "ssd" ||
		*spec.AutomountServiceAccountToken || spec.Affinity != nil || o.Claim == nil {
		t.Errorf("the pod is %+v, its claim %+v", spec, o.Claim)
	}
	done := copies()
	done.Status.CopiedFrom = done.Spec.CopyFrom
	if o := render(t, done, from); IsCopier(o.Pod) || len(o.Pod.Spec.Containers) != 2 {
		t.Errorf("after the copy, the pod runs %+v", o.Pod.Spec.Containers)
	}
}

func TestCopierRunsWhereSourceRuns(t *testing.T) {
	term := func(zones ...string) corev1.NodeSelectorTerm {
		term := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-2"}}}}
		for _, zone := range zones {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}})
		}
		return term
	}
	for name, c := range map[string]struct{ terms, want []corev1.NodeSelectorTerm }{
		"the template has no affinity": {nil, []corev1.NodeSelectorTerm{term()}},
		"it has two alternatives": {[]corev1.NodeSelectorTerm{{MatchExpressions: term("a").MatchExpressions},
			{MatchExpressions: term("b").MatchExpressions}}, []corev1.NodeSelectorTerm{term("a"), term("b")}},
	} {
		from := podTemplate("", func(t *corev1.PodTemplate) {
			if c.terms != nil {
				t.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: c.terms}}}
			}
		})
		s := settings
		s.SourceNode = "node-2"
		o, err := Render(copies(), from, s)
		check.OK(t, err)
		check.Equal(t, name, c.want,
			o.Pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
	}
}
