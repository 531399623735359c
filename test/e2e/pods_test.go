// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/check"
)

func TestPodQuotaBlocksChatUntilRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, reply(say("Fine.")))
	quota := &corev1.ResourceQuota{ObjectMeta: w.meta("pods"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}, // The model's own.
	}}
	w.create(quota)
	eventually(t, "the quota is in force", func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(quota), quota) == nil && !quota.Status.Used.Pods().IsZero()
	})
	w.newChat("c", "hello")
	eventually(t, "the chat says why it gets no pod", func() bool {
		var chat v1alpha1.Chat
		if c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "c"}, &chat) != nil {
			return false
		}
		for _, condition := range chat.Status.Conditions {
			if condition.Type == v1alpha1.ConditionReady {
				return v1alpha1.ReasonOf(&condition) == v1alpha1.ReasonGenerationPodRefused
			}
		}
		return false
	})
	check.OK(t, c.Delete(t.Context(), quota))
	w.ready("c", 2)
}

func TestWarmPodGetsItsRightsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, reply(say("Fine.")))
	w.newChat("c", "hello")
	w.ready("c", 2)
	for _, o := range []client.Object{&rbacv1.RoleBinding{ObjectMeta: w.meta(podspec.ServiceAccount)},
		&rbacv1.Role{ObjectMeta: w.meta(podspec.ServiceAccount)}} {
		check.OK(t, c.Delete(t.Context(), o))
	}
	w.say("c", "more", "more")
	w.ready("c", 4)
}
