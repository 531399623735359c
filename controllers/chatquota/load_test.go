// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatquota

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/capacity"
)

// stored is a client that reads these quotas and does nothing else.
type stored struct {
	client.Client
	cluster v1alpha1.ClusterChatQuota
	quotas  []v1alpha1.ChatQuota
}

func (s stored) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	*into.(*v1alpha1.ClusterChatQuota) = s.cluster
	return nil
}

func (s stored) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.ChatQuotaList).Items = s.quotas
	return nil
}

func TestLoadTellsTheGateTheLimitsOfAllNamespaces(t *testing.T) {
	quota := func(ns, name string, chats int32) v1alpha1.ChatQuota {
		return v1alpha1.ChatQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec:       v1alpha1.ChatQuotaSpec{Generating: v1alpha1.GeneratingLimits{Chats: &chats}},
		}
	}
	gate := capacity.NewGate()
	r := &Reconciler{Gate: gate, Client: stored{
		cluster: v1alpha1.ClusterChatQuota{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterChatQuotaName},
			Spec:       v1alpha1.ClusterChatQuotaSpec{NamespaceDefault: &v1alpha1.GeneratingLimits{Chats: new(int32(0))}},
		},
		quotas: []v1alpha1.ChatQuota{quota("a", "large", 5), quota("b", "b", 1), quota("a", "none", 0)},
	}}
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for ns, want := range map[string]capacity.Held{
		"a": {Limit: capacity.Limit{Quota: "none"}, Namespace: "a"},
		"b": {},
		"c": {Limit: capacity.Limit{Quota: "default"}, Scope: capacity.EachNamespace, Namespace: "c"},
	} {
		var got capacity.Held
		if held := gate.Enter(capacity.Chat{Key: types.NamespacedName{Namespace: ns, Name: "c"}}); held != nil {
			got = *held
		}
		if got != want {
			t.Errorf("a chat in %s is held by %+v, want %+v", ns, got, want)
		}
	}
}
