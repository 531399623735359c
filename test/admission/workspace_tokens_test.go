// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/protocol"
)

// request is what a generation pod asks for to call the agent of a workspace in its namespace, changed.
func request(t *testing.T, of actor,
	change ...func(*authenticationv1.TokenRequestSpec)) *authenticationv1.TokenRequest {
	t.Helper()
	var pod corev1.Pod
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: of.namespace, Name: of.pod}, &pod); err != nil {
		t.Fatal(err)
	}
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{protocol.Audience(of.namespace, "a-pod")},
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name,
			UID: pod.UID},
	}}
	for _, c := range change {
		c(&r.Spec)
	}
	return r
}

// asks requests a token of the account.
func asks(namespace, account string, r *authenticationv1.TokenRequest) func(context.Context, client.Client) error {
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

func TestWorkspaceTokenMustBeBoundAndShortLived(t *testing.T) {
	t.Parallel()
	const noToken = "tokens of the service account parley-generation go to the kubelets"
	type spec = authenticationv1.TokenRequestSpec
	own := protocol.Audience(ns, "a-pod")
	asks := func(change ...func(*spec)) func(context.Context, client.Client) error {
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
	if err := asks(ns, podspec.ServiceAccount, r)(t.Context(), as(t, podA)); err != nil {
		t.Fatal(err)
	}
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
