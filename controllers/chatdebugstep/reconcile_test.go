// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatdebugstep

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

var request = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "step"}}

// recording is one of chat c, which expires in an hour, while the attempt that pod "pod" began so long ago is under
// way.
func recording(begun time.Duration, change ...func(*v1beta1.ChatDebugStep)) *v1beta1.ChatDebugStep {
	chat, since := chattest.Generating(), now.Add(-begun)
	step := &v1beta1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "step", UID: "step-uid",
			Annotations: map[string]string{
				v1beta1.AnnotationExpiresAt:  now.Add(time.Hour).Format(time.RFC3339),
				v1beta1.AnnotationInProgress: "pod 1 " + since.Format(time.RFC3339),
				v1beta1.AnnotationHistory:    fmt.Sprintf("%d/3", chat.Status.History.Version),
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(chat,
				v1beta1.GroupVersion.WithKind("Chat"))},
		},
		DebugRecording: v1beta1.DebugRecording{
			ChatRef: v1beta1.ChatReference{Name: "c"}, State: v1beta1.DebugInProgress, Attempt: 1, Pod: "pod",
			StartedAt: metav1.NewMicroTime(since),
			Attempts: []v1beta1.DebugAttempt{{Number: 1, Pod: "pod", State: v1beta1.DebugInProgress,
				StartedAt: metav1.NewMicroTime(since)}},
		},
	}
	for _, c := range change {
		c(step)
	}
	return step
}

func expired(s *v1beta1.ChatDebugStep) {
	s.Annotations[v1beta1.AnnotationExpiresAt] = now.Format(time.RFC3339)
}

func ended(s *v1beta1.ChatDebugStep) { s.Annotations[v1beta1.AnnotationInProgress] = "" }

// working is the pod that makes it.
func working() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return pod
}

func begin(t *testing.T, objects ...client.Object) (*fakeapi.Server, *Reconciler) {
	t.Helper()
	s := fakeapi.New(t, objects...)
	return s, &Reconciler{Client: s.Client, Live: s.Live, Now: func() time.Time { return now }}
}

func TestRecordingIsKeptEndedOrRemoved(t *testing.T) {
	archived, movedOn := chattest.Generating(), chattest.Generating()
	archived.Status.Archived = true
	movedOn.Status.Generation = nil
	failed := working()
	failed.Status.Phase = corev1.PodFailed
	for name, c := range map[string]struct {
		objects []client.Object
		writes  []string
		again   time.Duration
	}{
		"its pod is at work":   {[]client.Object{recording(0), chattest.Generating(), working()}, nil, patience},
		"it has ended":         {[]client.Object{recording(0, ended), chattest.Generating()}, nil, time.Hour},
		"its time is up":       {[]client.Object{recording(0, expired), chattest.Generating(), working()}, deletes, 0},
		"its chat is archived": {[]client.Object{recording(0), archived, working()}, deletes, 0},
		"its pod is gone":      {[]client.Object{recording(0), chattest.Generating()}, ends, 0},
		"its pod has failed":   {[]client.Object{recording(0), chattest.Generating(), failed}, ends, 0},
		"its chat has long moved on": {[]client.Object{recording(patience), movedOn, working()}, ends,
			0},
		"its chat has just moved on": {[]client.Object{recording(time.Minute), movedOn, working()}, nil,
			patience - time.Minute},
		"another chat has the name": {[]client.Object{recording(patience),
			chattest.In("ns", chattest.Chat("c", chattest.UID("new"))), working()}, ends, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t, c.objects...)
			result, err := r.Reconcile(t.Context(), request)
			if err != nil || result.RequeueAfter != c.again || !slices.Equal(s.Writes(), c.writes) {
				t.Errorf("got %v, %v after %v, want %v and %v", result, err, s.Writes(), c.again, c.writes)
			}
		})
	}
}

var deletes, ends = []string{"delete chatdebugstep"}, []string{"patch chatdebugstep"}

func TestPodMissingInTheCacheKeepsItsRecording(t *testing.T) {
	s, r := begin(t, recording(0), chattest.Generating())
	r.Live = fakeapi.New(t, working()).Live
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != patience ||
		len(s.Writes()) != 0 {
		t.Errorf("got %v, %v after %v", result, err, s.Writes())
	}
}

// That the rest of it is kept takes a real API server to show.
func TestAnInterruptedRecordingSaysSo(t *testing.T) {
	s, r := begin(t, recording(time.Minute), chattest.Generating())
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	got := fakeapi.Read(t, s, recording(0))
	if got.State != v1beta1.DebugInterrupted || !got.FinishedAt.Time.Equal(now) ||
		got.Annotations[v1beta1.AnnotationInProgress] != "" {
		t.Errorf("it is %+v with %v", got.DebugRecording, got.Annotations)
	}
	if a := got.Attempts; len(a) != 1 || a[0].Number != 1 || a[0].State != v1beta1.DebugInterrupted ||
		!a[0].FinishedAt.Time.Equal(now) {
		t.Errorf("its attempts are %+v", a)
	}
}

func TestFaultOfAnyCallLosesNoRecording(t *testing.T) {
	gone := []fakeapi.Fault{fakeapi.NotFound}
	for name, c := range map[string]struct {
		objects []client.Object
		settled map[string][]fakeapi.Fault
	}{
		"it expires": {[]client.Object{recording(0, expired), chattest.Generating()}, map[string][]fakeapi.Fault{
			// A person may have given it more time. That is an event.
			"get chatdebugstep": gone, "delete chatdebugstep": {fakeapi.NotFound, fakeapi.Conflict},
		}},
		"it ends": {[]client.Object{recording(patience), chattest.Generating()}, map[string][]fakeapi.Fault{
			"get chatdebugstep": gone, "patch chatdebugstep": {fakeapi.NotFound, fakeapi.Conflict},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			faults := fakeapi.Reconcile{
				Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
					var objects []client.Object
					for _, o := range c.objects {
						objects = append(objects, o.DeepCopyObject().(client.Object))
					}
					return begin(t, objects...)
				},
				Request: request, Settled: c.settled, State: []client.ObjectList{&v1beta1.ChatDebugStepList{}},
			}
			faults.Run(t)
		})
	}
}

func TestPodAndArchivedChatRequeueTheirRecordings(t *testing.T) {
	other := recording(0)
	other.Name, other.Annotations[v1beta1.AnnotationInProgress] = "other", "another-pod 1 "+now.Format(time.RFC3339)
	other.OwnerReferences[0].UID = "another-chat"
	_, r := begin(t, recording(0), other)
	for name, requests := range map[string][]reconcile.Request{
		"the pod":  r.recordings(isOfPod)(t.Context(), working()),
		"the chat": r.recordings(isOfChat)(t.Context(), chattest.Generating()),
	} {
		if !slices.Equal(requests, []reconcile.Request{request}) {
			t.Errorf("%s requeues %v", name, requests)
		}
	}
}
