// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/test/kit/check"
)

func TestRunAsGroupImpliesRunAsUser(t *testing.T) {
	// Runtimes start no pod of which only the group is known: "user group is specified without user".
	for name, user := range map[string]*int64{"the container names one": new(int64(1000)), "nobody names one": nil} {
		pod := render(t, workspace(), podTemplate("", container(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{RunAsUser: user}
		}))).Pod
		if s := pod.Spec.SecurityContext; s.RunAsGroup == nil || s.RunAsUser == nil {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

func TestPrivilegedContainerGetsNoPrivilegeEscalationDefault(t *testing.T) {
	for name, s := range map[string]corev1.SecurityContext{
		"privileged":        {Privileged: new(true)},
		"a root capability": {Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CAP_SYS_ADMIN"}}},
	} {
		pod := render(t, workspace(), podTemplate("", container(func(c *corev1.Container) { c.SecurityContext = &s }))).Pod
		// The API server refuses the two together before any policy is asked, and says nothing of what to do.
		check.Equal(t, name, nil, pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation)
	}
}

func TestRootUserIsRejectedUnlessTemplateAllowsIt(t *testing.T) {
	root := func(user *int64, nonRoot *bool) *corev1.PodTemplate {
		return podTemplate("", container(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{RunAsUser: user, RunAsNonRoot: nonRoot}
		}))
	}
	render(t, workspace(), root(new(int64(0)), new(false)))
	ofPod := root(nil, nil)
	ofPod.Template.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
	for name, from := range map[string]*corev1.PodTemplate{
		"nothing said":     root(new(int64(0)), nil),
		"no root said":     root(new(int64(0)), new(true)),
		"the pod names it": ofPod,
	} {
		_, err := Render(workspace(), from, settings)
		if err == nil || !strings.Contains(err.Error(), "runs as user 0") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNetworkPolicyAllowsOnlyNamedPeers(t *testing.T) {
	spec := NetworkPolicy("ns", "parley-system").Spec
	if len(spec.PolicyTypes) != 2 || spec.PodSelector.MatchLabels["parley.dev/component"] != "workspace" {
		t.Errorf("the policy is about %v of %v", spec.PolicyTypes, spec.PodSelector)
	}
	reached := map[string]bool{}
	for _, rule := range spec.Egress {
		where := "anywhere"
		if len(rule.To) > 0 {
			where = rule.To[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]
		}
		if len(rule.Ports) == 0 || len(rule.To) > 1 {
			t.Errorf("they reach %+v", rule)
		}
		for _, port := range rule.Ports {
			reached[fmt.Sprintf("%s %s", where, port.Port)] = port.EndPort == nil
		}
	}
	check.Equal(t, "destinations", map[string]bool{"anywhere 53": true, "openshift-dns 5353": true}, reached)
	for _, rule := range spec.Ingress {
		if len(rule.From) != 2 || rule.From[0].PodSelector.MatchLabels["parley.dev/component"] != "generation" ||
			rule.From[0].NamespaceSelector != nil || len(rule.Ports) != 1 || rule.Ports[0].Port.IntValue() != 7080 ||
			rule.From[1].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "parley-system" ||
			rule.From[1].PodSelector.MatchLabels["app.kubernetes.io/component"] != "gateway" {
			t.Errorf("they are reached as %+v", rule)
		}
	}
}
