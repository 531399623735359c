// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/check"
)

// renderWith renders a workspace with settings of an administrator.
func renderWith(t *testing.T, change func(*Settings), from *corev1.PodTemplate) *corev1.Pod {
	t.Helper()
	s := settings
	change(&s)
	o, err := Render(workspace(), from, s)
	check.OK(t, err)
	return o.Pod
}

func TestAdministratorsOptionsReachWorkspaces(t *testing.T) {
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	options := func(s *Settings) {
		s.Options.PodOptions = podspec.PodOptions{Labels: map[string]string{"team": "a"},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			NodeSelector:     map[string]string{"pool": "tools"}, Resources: corev1.ResourceRequirements{Limits: memory}}
	}
	pod := renderWith(t, options, podTemplate(""))
	check.Equal(t, "label", "a", pod.Labels["team"])
	check.Equal(t, "own label", podspec.ComponentWorkspace, pod.Labels[podspec.LabelComponent])
	check.Equal(t, "pull secrets", []corev1.LocalObjectReference{{Name: "registry"}},
		pod.Spec.ImagePullSecrets)
	check.Equal(t, "node selector", map[string]string{"pool": "tools", "kubernetes.io/os": "linux"}, pod.Spec.NodeSelector)
	check.Equal(t, "resources", memory, pod.Spec.Containers[0].Resources.Limits)

	own := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	pod = renderWith(t, options, podTemplate("", container(func(c *corev1.Container) { c.Resources.Requests = own }),
		func(t *corev1.PodTemplate) { t.Template.Spec.NodeSelector = map[string]string{"zone": "b"} }))
	check.Equal(t, "the template's node selector", map[string]string{"zone": "b", "kubernetes.io/os": "linux"},
		pod.Spec.NodeSelector)
	check.Equal(t, "the template's resources", corev1.ResourceRequirements{Requests: own},
		pod.Spec.Containers[0].Resources)
}

func TestWorkspacesGetNoUserWhereAnyIsAllowed(t *testing.T) {
	pod := renderWith(t, func(s *Settings) { s.Options.AnyUser = true }, podTemplate(""))
	s := pod.Spec.SecurityContext
	if s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		t.Errorf("got %+v", s)
	}
}

func TestProxyAndAuthoritiesReachCommands(t *testing.T) {
	proxied := func(s *Settings) {
		s.Proxy = podspec.Proxy{HTTPS: "http://proxy.corp:3128", Except: ".svc"}
		s.CABundle = &v1beta1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}
	}
	values := func(pod *corev1.Pod) map[string]string {
		all := map[string]string{}
		for _, e := range pod.Spec.Containers[0].Env {
			all[e.Name] = e.Value
		}
		return all
	}
	got := values(renderWith(t, proxied, podTemplate("")))
	for name, want := range map[string]string{"HTTPS_PROXY": "http://proxy.corp:3128", "no_proxy": ".svc",
		"HTTP_PROXY": "", "NODE_EXTRA_CA_CERTS": podspec.CAFile} {
		check.Equal(t, name, want, got[name])
	}
	pod := renderWith(t, proxied, podTemplate("", container(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "https_proxy", Value: "http://own:1"}}
	})))
	check.Equal(t, "the template's own", "http://own:1", values(pod)["https_proxy"])
	check.Equal(t, "the other spelling", "", values(pod)["HTTPS_PROXY"])
	_, err := Render(workspace(), podTemplate("", container(func(c *corev1.Container) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/var/run/parley/ca"}}
	})), Settings{CABundle: &v1beta1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}})
	if err == nil {
		t.Error("a template may mount something over the certificates")
	}
}
