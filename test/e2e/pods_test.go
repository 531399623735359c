// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
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
		var chat v1beta1.Chat
		if c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "c"}, &chat) != nil {
			return false
		}
		for _, condition := range chat.Status.Conditions {
			if condition.Type == v1beta1.ConditionReady {
				return v1beta1.ReasonOf(&condition) == v1beta1.ReasonGenerationPodRejected
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

// TestNamespaceEditorCannotActAsGenerationPod: the kubelet of a real node gets the pod's token, or there would be no
// reply; who holds the cluster's role edit does not.
func TestNamespaceEditorCannotActAsGenerationPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		reply(say("Fine.")))
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "hello"}})
	w.ready("c", 2)
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(w.ns),
		client.MatchingLabels{"parley.dev/component": "generation"}); err != nil || len(pods.Items) == 0 {
		t.Fatalf("found %d generation pods, %v", len(pods.Items), err)
	}
	pod := &pods.Items[0]
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: w.meta("editor"),
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "editor"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	})
	editor := w.as("editor")
	eventually(t, "the editor may read pods",
		func() bool { return editor.Get(t.Context(), client.ObjectKeyFromObject(pod), pod) == nil })

	account := &corev1.ServiceAccount{ObjectMeta: w.meta("parley-generation")}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	own := &corev1.Pod{ObjectMeta: w.meta("own"), Spec: *pod.Spec.DeepCopy()}
	own.Spec.NodeName = ""
	for what, err := range map[string]error{
		"go to the kubelets":                     editor.SubResource("token").Create(t.Context(), account, request),
		"only Parley's manager creates pods":     editor.Create(t.Context(), own),
		"nobody runs commands in generation pod": editor.SubResource("exec").Create(t.Context(), pod, pod.DeepCopy()),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("the refusal does not say %q: %v", what, err)
		}
	}
}

// as is a client of somebody else.
func (w *world) as(user string) client.Client {
	w.t.Helper()
	cfg, err := ctrl.GetConfig()
	check.OK(w.t, err)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	other, err := client.New(cfg, client.Options{Scheme: controllers.Scheme()})
	check.OK(w.t, err)
	return other
}
