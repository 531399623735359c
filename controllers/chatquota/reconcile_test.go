// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatquota

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

// quota lets so many chats of the namespace generate.
func quota(ns, name string, chats int32) *v1beta1.ChatQuota {
	return &v1beta1.ChatQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Generation: 2},
		Spec:       v1beta1.ChatQuotaSpec{Generating: v1beta1.GeneratingLimits{Chats: &chats}},
	}
}

// clusterQuota lets so many chats of each namespace generate that has no quota of its own.
func clusterQuota(chats int32) *v1beta1.ClusterChatQuota {
	return &v1beta1.ClusterChatQuota{
		ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ClusterChatQuotaName, Generation: 2},
		Spec:       v1beta1.ClusterChatQuotaSpec{NamespaceDefault: &v1beta1.GeneratingLimits{Chats: &chats}},
	}
}

func begin(t *testing.T, quotas ...client.Object) (*fakeapi.Server, *Reconciler) {
	t.Helper()
	s := fakeapi.New(t, quotas...)
	return s, &Reconciler{Client: s.Client, Gate: capacity.NewGate(), Owns: shard.Shard{}.Owns,
		Now: func() time.Time { return chattest.Now }}
}

func request(ns, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: ns, Name: name}}
}

// held is what the gate holds one more chat of the namespace by.
func held(r *Reconciler, ns string) (by capacity.Held) {
	if held := r.Gate.Enter(capacity.Chat{Key: types.NamespacedName{Namespace: ns, Name: "c"}}); held != nil {
		by = *held
	}
	return by
}

func reason(conditions []metav1.Condition) v1beta1.ConditionReason {
	return v1beta1.ReasonOf(meta.FindStatusCondition(conditions, v1beta1.ConditionReady))
}

func TestQuotaIsEnforcedBeforeItReportsReady(t *testing.T) {
	for name, c := range map[string]struct {
		quotas  []client.Object
		request ctrl.Request
		held    capacity.Held
	}{
		"of a namespace": {[]client.Object{quota("a", "none", 0)}, request("a", "none"),
			capacity.Held{Limit: capacity.Limit{Quota: "none"}, Namespace: "a"}},
		"of the cluster": {[]client.Object{clusterQuota(0)}, request("", v1beta1.ClusterChatQuotaName),
			capacity.Held{Limit: capacity.Limit{Quota: "default"}, Scope: capacity.EachNamespace, Namespace: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t, c.quotas...)
			s.Fail = func(call string) error {
				if slices.Contains(s.Writes(), call) && held(r, "a") != c.held {
					t.Error("it says so before the gate knows it")
				}
				return nil
			}
			if result, err := r.Reconcile(t.Context(), c.request); err != nil || !result.IsZero() {
				t.Fatalf("got %v, %v", result, err)
			}
			check.Equal(t, "a chat is held by", c.held, held(r, "a"))
			var conditions []metav1.Condition
			if c.request.Namespace == "" {
				conditions = fakeapi.Read(t, s, clusterQuota(0)).Status.Conditions
			} else {
				conditions = fakeapi.Read(t, s, quota("a", "none", 0)).Status.Conditions
			}
			check.Equal(t, "it says", v1beta1.ReasonEnforced, reason(conditions))
			if _, err := r.Reconcile(t.Context(), c.request); err != nil || len(s.Writes()) != 1 {
				t.Errorf("what it says already is written again: %v, %v", s.Writes(), err)
			}
		})
	}
}

func TestAQuotaThatIsGoneHoldsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		quota   client.Object
		request ctrl.Request
	}{
		"of a namespace": {quota("a", "none", 0), request("a", "none")},
		"of the cluster": {clusterQuota(0), request("", v1beta1.ClusterChatQuotaName)},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t, c.quota)
			if _, err := r.Reconcile(t.Context(), c.request); err != nil {
				t.Fatal(err)
			}
			check.OK(t, s.Direct.Delete(t.Context(), c.quota))
			if result, err := r.Reconcile(t.Context(), c.request); err != nil || !result.IsZero() {
				t.Errorf("got %v, %v", result, err)
			}
			check.Equal(t, "a chat is held by", (capacity.Held{}), held(r, "a"))
		})
	}
}

func TestFaultOfAnyCallLosesNoQuotaStatus(t *testing.T) {
	for name, c := range map[string]struct {
		request ctrl.Request
		settled map[string][]fakeapi.Fault
	}{
		"of a namespace": {request("a", "one"), map[string][]fakeapi.Fault{
			// There need be no ClusterChatQuota. One that comes requeues all ChatQuotas.
			"get clusterchatquota": {fakeapi.NotFound},
			"get chatquota":        {fakeapi.NotFound},
		}},
		"of the cluster": {request("", v1beta1.ClusterChatQuotaName), map[string][]fakeapi.Fault{
			"get clusterchatquota": {fakeapi.NotFound},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			faults := fakeapi.Reconcile{
				Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
					return begin(t, clusterQuota(5), quota("a", "one", 1))
				},
				Request: c.request, Settled: c.settled,
				State: []client.ObjectList{&v1beta1.ChatQuotaList{}, &v1beta1.ClusterChatQuotaList{}},
			}
			faults.Run(t)
		})
	}
}
