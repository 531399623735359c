// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1alpha1"
)

func key(secret, key string) v1alpha1.SecretKeyReference {
	return v1alpha1.SecretKeyReference{Name: secret, Key: key}
}

func settings() Settings {
	return Settings{
		Namespace: "demo", Image: "parley:1", Issuer: "https://issuer", GatewaySubjects: []string{"gateway"},
		Keys: []v1alpha1.SecretKeyReference{key("a", "one"), key("a", "two"), key("b", "one")},
	}
}

func TestTheHashNamesTheSettings(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"image":    func(s *Settings) { s.Image = "parley:2" },
		"issuer":   func(s *Settings) { s.Issuer = "other" },
		"gateways": func(s *Settings) { s.GatewaySubjects = nil },
		"hosts":    func(s *Settings) { s.FileHosts = []string{"a"} },
		"keys":     func(s *Settings) { s.Keys = s.Keys[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			other := settings()
			change(&other)
			if other.Hash() == settings().Hash() {
				t.Error("the hash did not change")
			}
		})
	}
	if first, second := settings().Hash(), settings().Hash(); first != second || Generation(settings(), "p").Labels[LabelTemplate] != settings().Hash() {
		t.Error("the same settings have two hashes, or the pod does not carry its own")
	}
}

func TestKeysAreCollectedOnceAndInOrder(t *testing.T) {
	config := func(ref *v1alpha1.SecretKeyReference) v1alpha1.ChatModelConfig {
		c := v1alpha1.ChatModelConfig{}
		if ref != nil {
			c.Spec.APIKey = &v1alpha1.APIKeySource{SecretKeyRef: *ref}
		}
		return c
	}
	b, a := key("b", "k"), key("a", "k")
	got := KeysOf([]v1alpha1.ChatModelConfig{config(&b), config(nil), config(&a), config(&b)})
	if !slices.Equal(got, []v1alpha1.SecretKeyReference{a, b}) {
		t.Errorf("got %v", got)
	}
}

func TestTheGeneratorIsToldFromWhereToFetchFiles(t *testing.T) {
	s := settings()
	s.FileHosts = []string{"a", "*.b"}
	if args := Generation(s, "p").Spec.Containers[0].Args; !slices.Equal(args[2:], []string{"--file-host=a", "--file-host=*.b"}) {
		t.Errorf("got %q", args)
	}
}

func TestKeysAreMountedIntoTheGeneratorAloneAndMayBeMissing(t *testing.T) {
	pod := Generation(settings(), "p")
	mounted := func(c *corev1.Container) (paths []string) {
		for _, m := range c.VolumeMounts {
			if strings.HasPrefix(m.MountPath, KeysDir) {
				paths = append(paths, m.MountPath)
			}
		}
		return paths
	}
	if got := mounted(&pod.Spec.Containers[0]); !slices.Equal(got, []string{KeysDir + "/a", KeysDir + "/b"}) {
		t.Errorf("the generator mounts %v", got)
	}
	if got := mounted(&pod.Spec.InitContainers[0]); got != nil {
		t.Errorf("the relay mounts %v", got)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil && (v.Secret.Optional == nil || !*v.Secret.Optional || len(v.Secret.Items) == 0) {
			t.Errorf("volume %s mounts all of its Secret, or keeps the pod from starting without it", v.Name)
		}
	}
}

// TestThePodIsRestricted holds the rules of the Pod Security level "restricted"; that the API server agrees, the end-to-end
// tests show, whose namespaces enforce it.
func TestThePodIsRestricted(t *testing.T) {
	pod := Generation(settings(), "p")
	spec := pod.Spec
	if !*spec.SecurityContext.RunAsNonRoot || spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *spec.AutomountServiceAccountToken {
		t.Errorf("the pod's security context is %+v", spec.SecurityContext)
	}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("the security context of %s is %+v", c.Name, s)
		}
		if c.Resources.Limits.Memory().IsZero() || c.ReadinessProbe == nil || c.StartupProbe == nil {
			t.Errorf("%s lacks a memory limit or a probe", c.Name)
		}
	}
	if relay := spec.InitContainers[0]; relay.RestartPolicy == nil || *relay.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("the relay is no sidecar")
	}
}

func TestAGenerationPodMayReadCreateMessagesAndRecordAndNothingElse(t *testing.T) {
	for _, rule := range Role("demo").Rules {
		if slices.Equal(rule.Resources, []string{"configmaps"}) && slices.Equal(rule.Verbs, []string{"get"}) && slices.Equal(rule.APIGroups, []string{""}) {
			continue
		}
		if !slices.Equal(rule.APIGroups, []string{"parley.dev"}) {
			t.Errorf("a rule is about %v", rule.APIGroups)
		}
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				read := slices.Contains([]string{"get", "list", "watch"}, verb)
				record := resource == "chatdebugsteps" && slices.Contains([]string{"get", "create", "update"}, verb)
				if !record && (resource == "chatdebugsteps" || !read && (verb != "create" || resource != "chatmessages")) {
					t.Errorf("a pod may %s %s", verb, resource)
				}
			}
		}
	}
}
