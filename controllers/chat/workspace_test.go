// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/test/kit/fakeapi"
)

// withWorkspace is chat c, which has a workspace that is kept for so long.
func withWorkspace(w *world, idleSeconds int32) *v1beta1.Chat {
	w.Helper()
	chat := w.chat()
	chat.Spec.Workspace = &v1beta1.WorkspaceSource{IdleSeconds: &idleSeconds,
		PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}
	if err := w.Direct.Update(w.Context(), chat); err != nil {
		w.Fatal(err)
	}
	return chat
}

// need says that the chat needs its workspace, and returns that with the writes that this cost.
func need(w *world, chat *v1beta1.Chat) (*v1beta1.Workspace, []string) {
	w.Helper()
	before := len(w.Writes())
	got, err := w.actuator.needWorkspace(w.Context(), chat)
	if err != nil {
		w.Fatal(err)
	}
	return got, w.Writes()[before:]
}

func TestConsecutiveCallsDoNotEachUpdateWorkspace(t *testing.T) {
	for name, c := range map[string]struct {
		idle  int32
		after time.Duration
		want  []string
	}{
		"soon":                         {1800, 7 * time.Minute, nil},
		"after a quarter of its time":  {1800, 8 * time.Minute, []string{"update workspace"}},
		"of one that is never stopped": {0, 100 * time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chat := withWorkspace(w, c.idle)
			got, writes := need(w, chat)
			become(w, v1beta1.WorkspacePhaseReady, metav1.ConditionTrue)
			if !slices.Equal(writes, []string{"create workspace"}) || !metav1.IsControlledBy(got, chat) {
				t.Errorf("it writes %v, and has %+v", writes, got.ObjectMeta)
			}
			w.actuator.now = func() time.Time { return now.Add(c.after) }
			if _, writes := need(w, chat); !slices.Equal(writes, c.want) {
				t.Errorf("needed again, it writes %v", writes)
			}
		})
	}
}

// A time that is renewed before the workspace has observed the last one, and calls that wait for each, would go on for
// ever where observing takes longer than the time is known.
func TestSlowObservationDoesNotDelayCallsForever(t *testing.T) {
	w := newWorld(t)
	chat := withWorkspace(w, 1)
	got, _ := need(w, chat)
	got.Generation = 2
	if err := w.Direct.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	w.actuator.now = func() time.Time { return now.Add(time.Minute) }
	if got, writes := need(w, chat); len(writes) != 0 || life.Starting(got, chat) != "it is about to start" {
		t.Errorf("it writes %v, and waits for %q", writes, life.Starting(got, chat))
	}
	become(w, v1beta1.WorkspacePhaseStopped, metav1.ConditionTrue)
	if got, writes := need(w, chat); len(writes) != 1 || life.Starting(got, chat) == "" {
		t.Errorf("it writes %v, and waits for %q", writes, life.Starting(got, chat))
	}
	become(w, v1beta1.WorkspacePhaseReady, metav1.ConditionTrue)
	w.actuator.now = func() time.Time { return now.Add(2 * time.Minute) }
	if got, writes := need(w, chat); len(writes) != 1 || life.Starting(got, chat) != "" {
		t.Errorf("it writes %v, and waits for %q", writes, life.Starting(got, chat))
	}
}

func TestAnEditedSourceReachesTheWorkspaceAtOnce(t *testing.T) {
	w := newWorld(t)
	chat := withWorkspace(w, 0)
	need(w, chat)
	chat.Spec.Workspace.PodTemplateRef.Name = "rust"
	if got, writes := need(w, chat); got.Spec.Source.PodTemplateRef.Name != "rust" || len(writes) != 1 {
		t.Errorf("it writes %v, and has %+v", writes, got.Spec.Source)
	}
}

func TestUncachedForeignWorkspaceDoesNotBlockChat(t *testing.T) {
	w := newWorld(t)
	chat := withWorkspace(w, 0)
	stranger := &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	if err := w.Direct.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	w.Fail = func(call string) error {
		if call != "get workspace" {
			return nil
		}
		return fakeapi.NotFound.Err()
	}
	got, _ := need(w, chat)
	if metav1.IsControlledBy(got, chat) || life.Starting(got, chat) != "" {
		t.Errorf("the chat takes it for its own, or waits: %+v", got.ObjectMeta)
	}
}

func TestChatWaitsForRemovalOfFormerChatsWorkspace(t *testing.T) {
	w := newWorld(t)
	former := withWorkspace(w, 0)
	got, _ := need(w, former)
	chat := former.DeepCopy()
	chat.UID = "another"
	if why := life.Starting(got, chat); why != "that of a former chat of this name is being removed" {
		t.Errorf("the chat waits for %q", why)
	}
	got.OwnerReferences[0].Name = "b"
	if why := life.Starting(got, chat); why != "" {
		t.Errorf("that of another chat is waited for: %s", why)
	}
}

func TestASuspendedWorkspaceHoldsNobodyUp(t *testing.T) {
	w := newWorld(t)
	chat := withWorkspace(w, 0)
	got, _ := need(w, chat)
	if life.Starting(got, chat) == "" {
		t.Error("a new workspace is not waited for")
	}
	got.Spec.Suspend = true
	if why := life.Starting(got, chat); why != "" {
		t.Errorf("a suspended one is: %s", why)
	}
}

// become gives the workspace of chat c this status.
func become(w *world, phase v1beta1.WorkspacePhase, ready metav1.ConditionStatus) {
	w.Helper()
	var got v1beta1.Workspace
	if err := w.Direct.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, &got); err != nil {
		w.Fatal(err)
	}
	got.Status = v1beta1.WorkspaceStatus{Phase: phase, ObservedGeneration: got.Generation, Conditions: []metav1.Condition{
		{Type: v1beta1.ConditionReady, Status: ready, Message: "as it is"}}}
	if err := w.Direct.Status().Update(w.Context(), &got); err != nil {
		w.Fatal(err)
	}
}

// stop has the model of chat c stop the workspace at that time.
func stop(chat *v1beta1.Chat, at time.Time) *metav1.MicroTime {
	chat.Status.Workspace = &v1beta1.ChatWorkspaceStatus{StoppedAt: new(metav1.NewMicroTime(at))}
	return chat.Status.Workspace.StoppedAt
}

func TestUseAfterModelStopMarksWorkspaceNeeded(t *testing.T) {
	for name, stopped := range map[string]time.Duration{"a moment ago": -time.Second, "now": 0, "ahead of our clock": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chat := withWorkspace(w, 1800)
			need(w, chat)
			become(w, v1beta1.WorkspacePhaseStopped, metav1.ConditionTrue)
			at := stop(chat, now.Add(stopped))
			w.actuator.now = func() time.Time { return now.Add(time.Millisecond) }
			got, writes := need(w, chat)
			if len(writes) != 1 && stopped >= 0 || !got.Spec.NeededAt.After(at.Time) {
				t.Errorf("it writes %v, and is needed at %s", writes, got.Spec.NeededAt)
			}
			if _, writes := need(w, chat); len(writes) != 0 {
				t.Errorf("needed once more, it writes %v", writes)
			}
		})
	}
}

func TestUseWaitsUntilModelStopOfWorkspaceCompletes(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, c := range map[string]struct {
		phase v1beta1.WorkspacePhase
		ready metav1.ConditionStatus
		waits bool
	}{
		"it still runs":             {v1beta1.WorkspacePhaseReady, yes, true},
		"it does not start":         {v1beta1.WorkspacePhaseStarting, unknown, true},
		"its pod is being removed":  {v1beta1.WorkspacePhaseStopping, unknown, true},
		"it has stopped":            {v1beta1.WorkspacePhaseStopped, yes, false},
		"only a person can mend it": {v1beta1.WorkspacePhaseFailed, no, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chat := withWorkspace(w, 1800)
			need(w, chat)
			become(w, c.phase, c.ready)
			stop(chat, now.Add(time.Second))
			got, writes := need(w, chat)
			if waits := len(writes) == 0; waits != c.waits {
				t.Errorf("it writes %v", writes)
			}
			if why := life.Starting(got, chat); strings.Contains(why, "its model said so") != c.waits {
				t.Errorf("the call is told: %q", why)
			}
			got.Spec.Suspend = true
			if why := life.Starting(got, chat); why != "" {
				t.Errorf("a suspended one is waited for: %s", why)
			}
		})
	}
}
