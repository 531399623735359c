// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// generationPod is one of the namespace.
func (w *world) generationPod() *corev1.Pod {
	w.t.Helper()
	var pods corev1.PodList
	if err := c.List(w.t.Context(), &pods, client.InNamespace(w.ns),
		client.MatchingLabels{"parley.dev/component": "generation"}); err != nil || len(pods.Items) == 0 {
		w.t.Fatalf("found %d generation pods, %v", len(pods.Items), err)
	}
	return &pods.Items[0]
}

// tokenFor asks for a token as a generation pod of the namespace does.
func (w *world) tokenFor(pod *corev1.Pod, audience string) (string, error) {
	w.t.Helper()
	cfg, err := ctrl.GetConfig()
	check.OK(w.t, err)
	const extra = "authentication.kubernetes.io/pod-"
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + w.ns + ":parley-generation",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + w.ns, "system:authenticated"},
		Extra:    map[string][]string{extra + "name": {pod.Name}, extra + "uid": {string(pod.UID)}},
	}
	as, err := client.New(cfg, client.Options{Scheme: controllers.Scheme()})
	check.OK(w.t, err)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}}
	account := &corev1.ServiceAccount{ObjectMeta: w.meta("parley-generation")}
	err = as.SubResource("token").Create(w.t.Context(), account, request)
	return request.Status.Token, err
}

// attack runs a shell script in a pod of the namespace, and returns what it prints.
func (w *world) attack(script string) string {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: w.meta("attacker"), Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "attacker", Image: toolbox, Command: []string{"/bin/sh", "-c", script},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
	}}
	pod.Labels = map[string]string{"app": "attacker"}
	w.create(pod)
	w.eventually("the attacker is done", func() bool {
		return c.Get(w.t.Context(), client.ObjectKeyFromObject(pod), pod) == nil && pod.Status.Phase == corev1.PodSucceeded
	})
	log, err := core.CoreV1().Pods(w.ns).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(w.t.Context())
	check.OK(w.t, err)
	return string(log)
}

// TestWorkspaceAcceptsOnlyGenerationPodsOfItsChat: the network policy around workspaces keeps the attacker from the
// agent, too; here it is let through, so that nothing but the agent itself holds.
func TestWorkspaceAcceptsOnlyGenerationPodsOfItsChat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(callOf("execute", map[string]any{"command": "true"})))
	w.template("shell")
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Work.",
		Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}}})
	chat := w.ready("c", 4)
	other := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{{
		Reply: say("Fine.")}}})
	other.create(&v1beta1.Chat{ObjectMeta: other.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "hello"}})
	elsewhere := other.ready("c", 2)

	w.create(&networkingv1.NetworkPolicy{ObjectMeta: w.meta("attacker"), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"parley.dev/component": "workspace"}},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "attacker"}}}}}}}})

	target := w.workspace("c").Status.Pod
	audience := protocol.Audience(w.ns, target.UID)
	if _, err := other.tokenFor(other.generationPod(), audience); err == nil {
		t.Error("a generation pod of another namespace gets a token for the workspace")
	}
	mint := func(of *world, audience string) string {
		token, err := of.tokenFor(of.generationPod(), audience)
		check.OK(t, err)
		return token
	}
	stranger := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	check.OK(t, c.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: w.meta("person")},
		stranger))
	attempts := []struct{ what, token, chat, want string }{
		{"without a token", "", string(chat.UID), "401"},
		{"with another account's token for it", stranger.Status.Token, string(chat.UID), "403"},
		{"with a token for another workspace", mint(w, protocol.Audience(w.ns, "another")), string(chat.UID), "401"},
		{"with another namespace's token", mint(other, protocol.Audience(other.ns, target.UID)), string(chat.UID), "401"},
		{"for another chat", mint(w, audience), string(elsewhere.UID), "409"},
		{"as its generation pods do", mint(w, audience), string(chat.UID), "200"},
	}
	var script strings.Builder
	for i, a := range attempts {
		fmt.Fprintf(&script, "echo %d $(wget -S -O /dev/null --header 'Authorization: Bearer %s' --header '%s: %s' "+
			"http://%s:%d/v1/processes 2>&1 | grep -m1 HTTP/)\n", i, a.token, protocol.HeaderChat, a.chat, target.Address,
			protocol.Port)
	}
	said := strings.Split(strings.TrimSpace(w.attack(script.String())), "\n")
	for i, a := range attempts {
		if i >= len(said) || !strings.HasPrefix(said[i], fmt.Sprint(i)) || !strings.Contains(said[i], " "+a.want+" ") {
			t.Errorf("%s: want %s of %q", a.what, a.want, said)
		}
	}
}
