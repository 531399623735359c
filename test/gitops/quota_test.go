// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/pods/capacity"
)

func TestBothToolsWaitUntilQuotaIsEnforced(t *testing.T) {
	unseen := v1beta1.ChatQuotaStatus{ObservedGeneration: -1} // As the schema's default has it.
	quota := &v1beta1.ChatQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "ChatQuota"},
		ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "demo", Generation: 1}, Status: unseen,
	}
	cluster := &v1beta1.ClusterChatQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "ClusterChatQuota"},
		ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1}, Status: unseen,
	}
	says := func(o runtime.Object, want judged) {
		t.Helper()
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		checks := readHealth(t)
		u := &unstructured.Unstructured{Object: content}
		if got := judge(t, checks, u); got != want {
			t.Errorf("%s is %v, want %v", id(u), got, want)
		}
	}
	says(quota, busy)
	says(cluster, busy)
	limits := capacity.OfCluster(nil)
	conditions.ChatQuota(quota, nil, capacity.Limits{}, limits.Namespace, time.Now())
	conditions.ClusterChatQuota(cluster, limits, time.Now())
	says(quota, done)
	says(cluster, done)
}
