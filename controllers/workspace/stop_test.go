// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

func TestIdleWorkspaceIsStoppedAndKeepsItsClaim(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("c"))
	sub := chattest.In("ns", chattest.Chat("sub"))
	sub.Spec.ParentRef = &v1beta1.ChatReference{Name: "c"}
	for name, c := range map[string]struct {
		phase v1beta1.ChatPhase
		want  v1beta1.ConditionReason
	}{
		"no chat is at work":           {v1beta1.ChatWaiting, v1beta1.ReasonWorkspaceStopped},
		"a sub-chat is at work":        {v1beta1.ChatRunning, v1beta1.ReasonWorkspaceReady},
		"a sub-chat waits for people":  {v1beta1.ChatRequiresAction, v1beta1.ReasonWorkspaceStopped},
		"a sub-chat finishes its call": {v1beta1.ChatInterrupting, v1beta1.ReasonWorkspaceReady},
	} {
		t.Run(name, func(t *testing.T) {
			below := sub.DeepCopy()
			below.Status.Phase = c.phase
			s, r := begin(t, time.Second, workspace(), podTemplate(), chat.DeepCopy(), below)
			reconciled(t, r)
			runs(t, s)
			reconciled(t, r)
			r.Now = func() time.Time { return chattest.Now.Add(31 * time.Minute) }
			reconciled(t, r)
			pod, claim := own(t, s)
			reason := reasonOf(t, s)
			if reason != c.want || claim == nil || (pod == nil) != (reason == v1beta1.ReasonWorkspaceStopped) {
				t.Errorf("it says %s, its pod is %v, its claim %v", reason, pod != nil, claim != nil)
			}
		})
	}
}

func TestIdleStopYieldsToConcurrentUse(t *testing.T) {
	s, r := begin(t, time.Second, workspace(), podTemplate(), chattest.In("ns", chattest.Chat("c")))
	reconciled(t, r)
	runs(t, s)
	reconciled(t, r)
	r.Now = func() time.Time { return chattest.Now.Add(31 * time.Minute) }
	before := len(s.Writes())
	s.Fail = func(call string) error {
		if call != "get pod" {
			return nil
		}
		s.Fail = nil
		w := fakeapi.Read(t, s, workspace())
		w.Spec.NeededAt = new(metav1.NewMicroTime(r.Now()))
		return s.Direct.Update(t.Context(), w)
	}
	result := reconciled(t, r)
	check.Equal(t, "it writes", []string{"update status of workspace"}, s.Writes()[before:])
	if result.RequeueAfter == 0 {
		t.Error("it is not reconciled again")
	}
	reconciled(t, r)
	pod, _ := own(t, s)
	check.Equal(t, "reason", v1beta1.ReasonWorkspaceReady, reasonOf(t, s))
	check.Equal(t, "it has a pod", true, pod != nil)
}

func TestIdleTimeStartsWhenLastChatFinishes(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.Status.Phase, chat.Status.Turn = v1beta1.ChatWaiting, &v1beta1.TurnStatus{}
	chat.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue,
		Reason: "TurnCompleted", LastTransitionTime: metav1.NewTime(chattest.Now.Add(2 * time.Hour))}}
	s, r := begin(t, time.Second, workspace(), podTemplate(), chat)
	reconciled(t, r)
	runs(t, s)
	for later, want := range map[time.Duration]v1beta1.ConditionReason{
		2*time.Hour + 29*time.Minute: v1beta1.ReasonWorkspaceReady, 2*time.Hour + 30*time.Minute: v1beta1.ReasonPodStopping,
	} {
		r.Now = func() time.Time { return chattest.Now.Add(later) }
		f, _, err := r.gather(t.Context(), fakeapi.Read(t, s, workspace()))
		check.OK(t, err)
		check.Equal(t, later, want, life.Decide(f).Summary.Reason)
	}
}

// Security (a hostile model): can stop and start its workspace repeatedly: each start is a pod.
func TestModelStopKeepsWorkspaceStoppedUntilNeeded(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.Status.Phase = v1beta1.ChatRunning
	s, r := begin(t, time.Second, workspace(), podTemplate(), chat)
	reconciled(t, r)
	runs(t, s)
	before := fakeapi.Read(t, s, chat.DeepCopy())
	after := before.DeepCopy()
	stopped := metav1.NewMicroTime(chattest.Now.Add(time.Second))
	after.Status.Workspace = &v1beta1.ChatWorkspaceStatus{StoppedAt: &stopped}
	check.OK(t, s.Direct.Status().Update(t.Context(), after))
	if !chatChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) ||
		chatChanges().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after}) {
		t.Error("the event that stops it does not requeue it, or another one does")
	}
	reconciled(t, r)
	if pod, _ := own(t, s); pod != nil || reasonOf(t, s) != v1beta1.ReasonWorkspaceStopped {
		t.Errorf("its pod is %v, and it says %s", pod != nil, reasonOf(t, s))
	}
	w := fakeapi.Read(t, s, workspace())
	w.Spec.NeededAt = new(metav1.NewMicroTime(chattest.Now.Add(time.Second + time.Microsecond)))
	check.OK(t, s.Direct.Update(t.Context(), w))
	reconciled(t, r)
	check.Equal(t, "reason", v1beta1.ReasonPodStarting, reasonOf(t, s))
}

func TestChatThatWaitsKeepsWorkspaceFromBeingIdle(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.Status.Wait = &v1beta1.ChatWait{For: v1beta1.WaitForWorkspace}
	s, r := begin(t, time.Hour, workspace(), podTemplate(), chat)
	reconciled(t, r)
	pod, _ := own(t, s)
	check.Equal(t, "it has a pod", true, pod != nil)
}
