// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// recording creates a recording that expires after the given time; zero: that does not say when.
func recording(t *testing.T, ns, name string, after time.Duration) *v1alpha1.ChatDebugStep {
	t.Helper()
	step := &v1alpha1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.ChatDebugStepSpec{
			ChatRef: v1alpha1.ChatReference{Name: "c"}, ChatUID: "uid", Action: v1alpha1.ActionGenerateAssistant, Call: 1, Pod: "p",
			Operation: v1alpha1.DebugStream, Attempt: 1, Status: v1alpha1.DebugCompleted, StartedAt: metav1.NowMicro(),
		},
	}
	if after != 0 {
		step.Annotations = map[string]string{v1alpha1.AnnotationExpiresAt: time.Now().Add(after).Format(time.RFC3339)}
	}
	create(t, step)
	return step
}

func expired(t *testing.T, step *v1alpha1.ChatDebugStep) bool {
	t.Helper()
	err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(step), step.DeepCopy())
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

func TestARecordingGoesWhenItExpires(t *testing.T) {
	ns := bareNamespace(t)
	past, soon := recording(t, ns, "past", -time.Hour), recording(t, ns, "soon", 3*time.Second)
	later, unsaid := recording(t, ns, "later", time.Hour), recording(t, ns, "unsaid", 0)
	eventually(t, "the one whose time is up has gone", func() bool { return expired(t, past) })
	if expired(t, soon) {
		t.Error("one went too early")
	}
	eventually(t, "the next one has gone, though nothing has happened", func() bool { return expired(t, soon) })
	if expired(t, later) || expired(t, unsaid) {
		t.Error("one went too early")
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationExpiresAt+`":"2020-01-01T00:00:00Z"}}}`))
	if err := cluster.Client.Patch(t.Context(), later, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the one whose time was moved has gone", func() bool { return expired(t, later) })
}

func TestDebugSettingsAreBounded(t *testing.T) {
	ns := bareNamespace(t)
	for seconds, valid := range map[int32]bool{59: false, 60: true, 2592000: true, 2592001: false} {
		chat := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "c-"}, Spec: v1alpha1.ChatSpec{
			Debug: &v1alpha1.DebugSettings{Enabled: true, ExpireAfterSeconds: &seconds},
		}}
		if err := cluster.Client.Create(t.Context(), chat); (err == nil) != valid {
			t.Errorf("%d seconds: %v", seconds, err)
		}
	}
}
