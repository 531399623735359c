// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testmanager"
)

// hasNoImage makes the kubelet's words of the pod those of an image that is not there.
func hasNoImage(t *testing.T, ns, name string) {
	t.Helper()
	var pod corev1.Pod
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &pod))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "relay",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
			Message: "no such tag"}},
	}}
	check.OK(t, cluster.Client.Status().Update(t.Context(), &pod))
}

func TestUnstartedPodIsReplacedAndKubeletMessageReported(t *testing.T) {
	stopManager(t)(func(o *testmanager.Options) { o.Controllers.PodStart = 4 * time.Second })
	defer func() { stopManager(t)() }()
	ns := namespace(t)
	create(t, newChat(ns, "c", "hello"))
	first := assigned(t, ns, "c", 1, 1).Status.Generation.Pod
	hasNoImage(t, ns, first)
	second := assigned(t, ns, "c", 1, 2).Status.Generation.Pod
	if second == first {
		t.Errorf("attempt 2 has pod %s again", first)
	}
	hasNoImage(t, ns, second)
	eventually(t, "the next attempt waits", func() bool {
		st := chatIn(t, ns, "c").Status
		return st.Retry != nil && st.Retry.Reason == v1beta1.ErrorGenerationPodLost &&
			st.Internal.Attempt.LostAttempts == 2 &&
			strings.Contains(st.Retry.Message, "it did not start within 4s: container relay: ImagePullBackOff no such tag")
	})
	if notes := eventsOf(t, ns, "c", "AttemptLost"); len(notes) == 0 ||
		!strings.Contains(strings.Join(notes, " "), "ImagePullBackOff") {
		t.Errorf("its Events are %q", notes)
	}
	eventually(t, "the first pod is removed", func() bool {
		var pod corev1.Pod
		err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: first}, &pod)
		return client.IgnoreNotFound(err) == nil && (err != nil || pod.DeletionTimestamp != nil)
	})
}

func TestStartingPodOfOldSettingsIsReplaced(t *testing.T) {
	ns := parallel(t)
	bad := modelConfig(ns, "bad", func(s *v1beta1.ChatModelConfigSpec) {
		s.APIKey = &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "odd", Key: "k"}}
	})
	create(t, bad)
	create(t, newChat(ns, "c", "hello"))
	first := assigned(t, ns, "c", 1, 1).Status.Generation.Pod
	remove(t, bad)
	if second := assigned(t, ns, "c", 1, 2).Status.Generation.Pod; second == first {
		t.Errorf("attempt 2 has pod %s again", first)
	}
}
