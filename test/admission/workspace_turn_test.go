// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// needsWorkspace creates the namespace with a chat in it whose model's call needs a workspace, and the generation pod
// that said so.
func needsWorkspace(t *testing.T, team string, tools *corev1.PodTemplate) (*v1beta1.Chat, actor) {
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
	w := &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "c"}}
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
	check.OK(t, cluster.Client.Status().Update(t.Context(), pod))
	await(t, "the calls are run", chat, func() bool {
		g := chat.Status.Generation
		return g != nil && g.Action == v1beta1.ActionExecuteTools
	})
	try(t, []write{
		{generator, "reads the workspace", gets(w), ""},
		{generator, "takes a token for it", takesToken(generator, protocol.Audience(team, string(pod.UID))), ""},
		{chatter, "suspends it", patches(w, suspends), noRight},
		{boss, "suspends it", patches(w, suspends), ""},
	})
	await(t, "it has no pod", w, func() bool { return w.Status.Phase == v1beta1.WorkspacePhaseStopped })
	if w.Status.Pod != nil || w.Status.Claim != claim.Name {
		t.Errorf("the status is %+v", w.Status)
	}
}

func TestTemplateWithHostAccessReportsPolicyMessage(t *testing.T) {
	const team = "diggers"
	chat, _ := needsWorkspace(t, team, toolTemplate(func(t *corev1.PodTemplate) { t.Template.Spec.HostPID = true }))
	w := &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: chat.Name}}
	await(t, "the refusal is said", w, func() bool {
		return slices.ContainsFunc(w.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1beta1.ConditionStalled && v1beta1.ReasonOf(&c) == v1beta1.ReasonPodRejected &&
				strings.Contains(c.Message, "a pod that the manager creates has nothing of its node")
		})
	})
}

// request is what a generation pod asks for to call the agent of a workspace in its namespace, changed.
func request(t *testing.T, of actor,
	change ...func(*authenticationv1.TokenRequestSpec)) *authenticationv1.TokenRequest {
	t.Helper()
	bound, err := of.bound(t.Context())
	check.OK(t, err)
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{protocol.Audience(of.namespace, "a-pod")}, BoundObjectRef: bound}}
	for _, c := range change {
		c(&r.Spec)
	}
	return r
}

// asks requests a token of the account.
func asks(namespace, account string, r *authenticationv1.TokenRequest) action {
	return func(ctx context.Context, c client.Client) error {
		of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
		return c.SubResource("token").Create(ctx, of, r)
	}
}

func lasts(seconds int64) func(*authenticationv1.TokenRequestSpec) {
	return func(s *authenticationv1.TokenRequestSpec) { s.ExpirationSeconds = &seconds }
}

func meantFor(audiences ...string) func(*authenticationv1.TokenRequestSpec) {
	return func(s *authenticationv1.TokenRequestSpec) { s.Audiences = audiences }
}

func bound(change func(*authenticationv1.BoundObjectReference)) func(*authenticationv1.TokenRequestSpec) {
	return func(s *authenticationv1.TokenRequestSpec) { change(s.BoundObjectRef) }
}

// Security (a hostile workspace): can disclose the token that generation pods send it to whoever reads the chat: the
// token is valid for at most an hour, only for this workspace. Also TestWorkspaceTokenIsRejectedByAPIServer of
// test/admission; TestUnauthenticatedRequestsAreRejected of internal/workspace/agent/server.
func TestWorkspaceTokenMustBeBoundAndShortLived(t *testing.T) {
	t.Parallel()
	const noToken = "tokens of the service account parley-generation go to the kubelets"
	type spec = authenticationv1.TokenRequestSpec
	own := protocol.Audience(ns, "a-pod")
	asks := func(change ...func(*spec)) action {
		return asks(ns, podspec.ServiceAccount, request(t, podA, change...))
	}
	try(t, []write{
		{podA, "takes one", asks(), ""},
		{podA, "takes one for ten minutes", asks(lasts(600)), ""},
		{podA, "takes one for an hour", asks(lasts(3600)), ""},
		{podA, "takes one for more than an hour", asks(lasts(3601)), noToken},
		{podA, "takes one for a year", asks(lasts(365 * 24 * 3600)), noToken},
		{podA, "takes one for the same workspace twice", asks(meantFor(own, own)), noToken},
		{podA, "takes one for the API server, too", asks(meantFor(own, "https://kubernetes.default.svc")), noToken},
		{podA, "takes one for a namespace that begins alike", asks(meantFor(protocol.Audience(ns+"-b", "a-pod"))), noToken},
		{podA, "takes one for the beginning of its namespace", asks(meantFor("parley-workspace/te")), noToken},
		{podA, "takes one that is bound to nothing", asks(func(s *spec) { s.BoundObjectRef = nil }), noToken},
		{podA, "takes one that is bound to a former pod of its name",
			asks(bound(func(r *authenticationv1.BoundObjectReference) { r.UID = "former" })), noToken},
		{podA, "takes one that is bound to whatever has its name",
			asks(bound(func(r *authenticationv1.BoundObjectReference) { r.UID = "" })), noToken},
		{podA, "takes one that is bound to a Secret",
			asks(bound(func(r *authenticationv1.BoundObjectReference) { r.Kind = "Secret" })), noToken},
		{podA, "takes one that is bound to its UID under another name",
			asks(bound(func(r *authenticationv1.BoundObjectReference) { r.Name = podB.pod })), noToken},
		{podB, "takes one of another pod", asks(), noToken},
		{podC, "takes one elsewhere", asks(), noRight},
		{manager, "takes one", asks(), noToken},
		{root, "takes one", asks(), noToken},
		{chatter, "takes one", asks(), noRight},
	})
}

func TestGenerationPodCannotRequestTokenOfAnotherAccount(t *testing.T) {
	t.Parallel()
	r := request(t, podA)
	try(t, []write{
		{podA, "takes one of an account of its namespace", asks(ns, "parley-manager", r), noRight},
		{podA, "takes one of the gateway", asks("parley-system", "parley-gateway", r), noRight},
		{podA, "takes one of generation pods elsewhere", asks(otherNS, podspec.ServiceAccount, r), noRight},
		{podC, "takes one of its own", asks(otherNS, podspec.ServiceAccount, request(t, podC)), ""},
	})
}

func TestWorkspaceTokenIsRejectedByAPIServer(t *testing.T) {
	t.Parallel()
	r := request(t, podA)
	check.OK(t, asks(ns, podspec.ServiceAccount, r)(t.Context(), as(t, podA)))
	cfg := rest.AnonymousClientConfig(cluster.Config)
	cfg.BearerToken = r.Status.Token
	c, err := newClient(cfg)
	if err == nil {
		err = listsAll(&corev1.PodList{})(t.Context(), c)
	}
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("a workspace that is shown it is told %v", err)
	}
}
