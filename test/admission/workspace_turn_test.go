// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
)

// needsWorkspace creates the namespace with a chat in it whose model's call needs a workspace, and the generation pod
// that said so.
func needsWorkspace(t *testing.T, team string, tools *corev1.PodTemplate) (*v1alpha1.Chat, actor) {
	t.Helper()
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, inNamespace(chatter.name, team, "parley-chat-user"),
		inNamespace(boss.name, team, "cluster-admin"), chattest.In(team, chattest.Config("default", chattest.Default)),
	} {
		mustCreate(t, administrator, o)
	}
	tools.Namespace, tools.Name = team, "go"
	awaitAllowed(t.Context(), t, boss, creates(tools))
	chat := chattest.In(team, chattest.Chat("c", chattest.Prompt("hello")))
	chat.Spec.Workspace = source(stored("1Gi", ""))
	awaitAllowed(t.Context(), t, chatter, creates(chat))
	startManager(t)
	await(t, "the chat is given to a pod", chat, func() bool { return chat.Status.Generation != nil })
	generator := actor{name: "the pod", namespace: team, account: podspec.ServiceAccount, pod: chat.Status.Generation.Pod}
	mustCreate(t, generator, result(chat, chattest.Works("call_1")))
	return chat, generator
}

// TestAWorkspacePassesTheRolesAndPolicies runs the real manager with the rights of its own account, from the first call
// that needs a workspace until somebody suspends it. The generation pod's part is played with a token of its own.
func TestAWorkspacePassesTheRolesAndPolicies(t *testing.T) {
	const team = "workers"
	chat, generator := needsWorkspace(t, team, toolTemplate())
	w := &v1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "c"}}
	await(t, "the workspace has a pod", w, func() bool { return w.Status.Pod != nil })
	own := metav1.ObjectMeta{Namespace: team, Name: template.Name(w)}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: own}
	for _, o := range []client.Object{
		claim, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: template.IssuerKeys}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: template.PolicyName}},
	} {
		await(t, o.GetName()+" is there", o, func() bool { return true })
	}
	pod := &corev1.Pod{ObjectMeta: own}
	await(t, "the pod is there", pod, func() bool { return metav1.IsControlledBy(pod, w) })
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := cluster.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	await(t, "the calls are run", chat, func() bool {
		g := chat.Status.Generation
		return g != nil && g.Action == v1alpha1.ActionExecuteTools
	})
	try(t, []write{
		{generator, "reads the workspace", gets(w), ""},
		{generator, "takes a token for it", takesToken(generator, protocol.Audience(team, string(pod.UID))), ""},
		{chatter, "suspends it", patches(w, suspends), noRight},
		{boss, "suspends it", patches(w, suspends), ""},
	})
	await(t, "it has no pod", w, func() bool { return w.Status.Phase == v1alpha1.WorkspacePhaseStopped })
	if w.Status.Pod != nil || w.Status.Claim != claim.Name {
		t.Errorf("the status is %+v", w.Status)
	}
}

func TestTemplateWithHostAccessReportsPolicyMessage(t *testing.T) {
	const team = "diggers"
	chat, _ := needsWorkspace(t, team, toolTemplate(func(t *corev1.PodTemplate) { t.Template.Spec.HostPID = true }))
	w := &v1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: chat.Name}}
	await(t, "the refusal is said", w, func() bool {
		return slices.ContainsFunc(w.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionStalled && v1alpha1.ReasonOf(&c) == v1alpha1.ReasonPodRefused &&
				strings.Contains(c.Message, "a pod that the manager creates has nothing of its node")
		})
	})
}
