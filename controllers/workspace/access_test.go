// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

func TestWorkspacePrerequisitesAreReappliedHourlyWherePodsExist(t *testing.T) {
	s, r := begin(t, 0)
	applied := []string{"apply networkpolicy", "apply configmap"}
	for _, step := range []struct {
		later time.Duration
		pod   *corev1.Pod
		want  []string
	}{
		{0, nil, nil},
		{0, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "any"}}, nil},
		{0, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine",
			Labels: map[string]string{podspec.LabelComponent: podspec.ComponentWorkspace}}}, applied},
		{59 * time.Minute, nil, nil},
		{time.Hour, nil, applied},
	} {
		if step.pod != nil {
			check.OK(t, s.Direct.Create(t.Context(), step.pod))
		}
		r.Access.Now = func() time.Time { return chattest.Now.Add(step.later) }
		before := len(s.Writes())
		namespace := ctrl.Request{NamespacedName: types.NamespacedName{Name: "ns"}}
		if _, err := r.Access.Reconcile(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		check.Equal(t, step.later, step.want, s.Writes()[before:])
	}
}

func TestRotatedIssuerKeysReachAgentsWithinAMinute(t *testing.T) {
	s, r := begin(t, 0, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine",
		Labels: map[string]string{podspec.LabelComponent: podspec.ComponentWorkspace}}})
	keys, fetched := `{"keys":[]}`, 0
	r.Access.Keys = func(context.Context) ([]byte, error) { fetched++; return []byte(keys), nil }
	namespace := ctrl.Request{NamespacedName: types.NamespacedName{Name: "ns"}}
	for i, step := range []struct {
		later         time.Duration
		keys          string
		fetched, want int // requests and writes, in all
	}{
		{0, keys, 1, 2}, {59 * time.Second, keys, 1, 2}, {time.Minute, keys, 2, 2},
		{2 * time.Minute, `{"keys":[{}]}`, 3, 4}, {3 * time.Minute, `{"keys":[{}]}`, 4, 4},
	} {
		keys = step.keys
		r.Access.Now = func() time.Time { return chattest.Now.Add(step.later) }
		result, err := r.Access.Reconcile(t.Context(), namespace)
		if err != nil || result.RequeueAfter != time.Minute || fetched != step.fetched || len(s.Writes()) != step.want {
			t.Errorf("step %d: %v, %v after %d requests and %v", i, result, err, fetched, s.Writes())
		}
	}
	issuer := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: template.IssuerKeys}}
	check.Equal(t, "keys", keys, fakeapi.Read(t, s, issuer).Data[protocol.IssuerKeysFile])
}
