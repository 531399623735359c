// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/podspec"
)

func policyIn(t *testing.T, ns string) *networkingv1.NetworkPolicy {
	t.Helper()
	var policy networkingv1.NetworkPolicy
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: podspec.ServiceAccount}, &policy); err != nil {
		t.Fatal(err)
	}
	return &policy
}

func TestANetworkPolicyOfAnOlderVersionIsCorrectedOnce(t *testing.T) {
	ns := namespace(t)
	old := podspec.NetworkPolicy(ns, "")
	old.Spec.Ingress = old.Spec.Ingress[:1] // Nobody could read the metrics.
	create(t, old)
	create(t, newChat(ns, "c", "hello"))
	assigned(t, ns, "c", 1, 1)
	corrected := policyIn(t, ns)
	if got := corrected.Spec.Ingress; len(got) != 2 || len(got[1].Ports) != 2 {
		t.Fatalf("the policy lets in %+v", got)
	}
	stopManager(t)()
	create(t, say(ns, "c", "second"))
	create(t, answer(assigned(t, ns, "c", 1, 1), nil))
	assigned(t, ns, "c", 3, 1)
	if policyIn(t, ns).ResourceVersion != corrected.ResourceVersion {
		t.Error("a policy that is right is written again")
	}
}
