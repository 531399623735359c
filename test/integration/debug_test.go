// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// recording creates a recording that expires after the given time; zero: that does not say when.
func recording(t *testing.T, ns, name string, after time.Duration) *v1beta1.ChatDebugStep {
	t.Helper()
	step := &v1beta1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		DebugRecording: v1beta1.DebugRecording{
			ChatRef: v1beta1.ChatReference{Name: "c"}, ChatUID: "uid", Action: v1beta1.ActionGenerateAssistant, Call: 1,
			Pod:     "p",
			Attempt: 1, State: v1beta1.DebugCompleted, StartedAt: metav1.NowMicro(),
		},
	}
	if after != 0 {
		step.Annotations = map[string]string{v1beta1.AnnotationExpiresAt: time.Now().Add(after).Format(time.RFC3339)}
	}
	create(t, step)
	return step
}

func expired(t *testing.T, step *v1beta1.ChatDebugStep) bool {
	t.Helper()
	err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(step), step.DeepCopy())
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

func TestARecordingGoesWhenItExpires(t *testing.T) {
	ns := parallelBare(t)
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
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"`+v1beta1.AnnotationExpiresAt+`":"2020-01-01T00:00:00Z"}}}`))
	check.OK(t, cluster.Client.Patch(t.Context(), later, patch))
	eventually(t, "the one whose time was moved has gone", func() bool { return expired(t, later) })
}

func TestDebugSettingsAreBounded(t *testing.T) {
	ns := parallelBare(t)
	for seconds, valid := range map[int32]bool{59: false, 60: true, 2592000: true, 2592001: false} {
		chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "c-"}, Spec: v1beta1.ChatSpec{
			Debug: &v1beta1.DebugSettings{Enabled: true, ExpireAfterSeconds: &seconds},
		}}
		if err := cluster.Client.Create(t.Context(), chat); (err == nil) != valid {
			t.Errorf("%d seconds: %v", seconds, err)
		}
	}
}

// annotated is a recording of chat c with annotations, which the chat owns if it is there.
func annotated(t *testing.T, ns, name string, annotations map[string]string, chat *v1beta1.Chat,
	change func(*v1beta1.DebugRecording)) *v1beta1.ChatDebugStep {
	t.Helper()
	step := &v1beta1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: annotations},
		DebugRecording: v1beta1.DebugRecording{
			ChatRef: v1beta1.ChatReference{Name: "c"}, ChatUID: "uid", Action: v1beta1.ActionGenerateAssistant, Call: 1,
			Pod:     "p",
			Attempt: 1, State: v1beta1.DebugCompleted, StartedAt: metav1.NowMicro(),
		},
	}
	if chat != nil {
		step.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Chat",
			Name: chat.Name, UID: chat.UID}}
	}
	if change != nil {
		change(&step.DebugRecording)
	}
	create(t, step)
	return step
}

func TestARecordingWhosePodIsGoneIsInterrupted(t *testing.T) {
	ns := parallelBare(t)
	begun := map[string]string{v1beta1.AnnotationInProgress: "no-such-pod 2 " + time.Now().UTC().Format(time.RFC3339)}
	step := annotated(t, ns, "c-1-generateassistant", begun, nil, func(s *v1beta1.DebugRecording) {
		s.State, s.Attempt = v1beta1.DebugInProgress, 2
		s.Request.Messages = []v1beta1.DebugMessage{{Role: "user",
			Parts: []v1beta1.DebugPart{{Type: v1beta1.DebugText, Text: "what was asked"}}}}
		for n := range int32(2) {
			s.Attempts = append(s.Attempts, v1beta1.DebugAttempt{Number: n + 1, Pod: "no-such-pod",
				State: v1beta1.DebugInProgress, StartedAt: s.StartedAt})
		}
		s.Attempts[0].State = v1beta1.DebugError
	})
	eventually(t, "it is interrupted", func() bool {
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(step), step))
		return step.State == v1beta1.DebugInterrupted
	})
	s := &step.DebugRecording
	if s.FinishedAt == nil || s.Attempts[0].State != v1beta1.DebugError ||
		s.Attempts[1].State != v1beta1.DebugInterrupted || s.Attempts[1].FinishedAt == nil {
		t.Errorf("recorded %+v", s)
	}
	if s.Request.Messages[0].Parts[0].Text != "what was asked" || s.Attempts[1].Pod != "no-such-pod" ||
		step.Annotations[v1beta1.AnnotationInProgress] != "" {
		t.Errorf("left %+v, %v", s, step.Annotations)
	}
}

func TestRecordingsGoWithTheMessagesThatTheyHold(t *testing.T) {
	ns := parallel(t)
	answered(t, ns, "second", "third")
	of := func(name, history string) *v1beta1.ChatDebugStep {
		return annotated(t, ns, name, map[string]string{v1beta1.AnnotationHistory: history}, nil, nil)
	}
	before, edited, after := of("before", "1/1"), of("edited", "3/3"), of("after", "5/5")
	unsaid, anew := annotated(t, ns, "unsaid", nil, nil, nil), of("anew", "7/3")
	edit(t, ns, "second", "I meant something else")
	eventually(t, "the recordings of what was edited have gone",
		func() bool { return expired(t, edited) && expired(t, after) })
	if expired(t, before) || expired(t, unsaid) || expired(t, anew) {
		t.Error("others have gone, too")
	}
}

func TestRecordingsGoWhenTheirChatIsArchived(t *testing.T) {
	ns := parallel(t)
	answered(t, ns, "second")
	chat := chatIn(t, ns, "c")
	mine, other := annotated(t, ns, "mine", nil, chat, nil), annotated(t, ns, "other", nil, nil, nil)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"archived":true}}`))
	check.OK(t, cluster.Client.Patch(t.Context(), chat, patch))
	eventually(t, "the recording has gone", func() bool { return expired(t, mine) })
	if expired(t, other) {
		t.Error("another one has gone, too")
	}
}
