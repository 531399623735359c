// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func pendingCall(kind v1beta1.RequiredAction, cause v1beta1.ApprovalCause) v1beta1.PendingToolCall {
	return v1beta1.PendingToolCall{ID: string(kind) + string(cause), Kind: kind, ApprovalCause: cause}
}

func TestWaitSaysWhatEndsIt(t *testing.T) {
	later := metav1.NewTime(noon.Add(time.Minute))
	acting := func(calls ...v1beta1.PendingToolCall) v1beta1.ChatStatus {
		return v1beta1.ChatStatus{Phase: v1beta1.ChatRequiresAction,
			RequiresAction: &v1beta1.RequiresActionStatus{Deadline: later, ToolCalls: calls}}
	}
	running := v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Turn: &v1beta1.TurnStatus{
		WaitingFor: []v1beta1.WaitingCallStatus{{WaitingCall: v1beta1.WaitingCall{Chat: "sub"}, Deadline: &later}}},
		Retry: &v1beta1.RetryStatus{Attempt: 1, Reason: v1beta1.ErrorOverloaded, At: metav1.NewMicroTime(later.Time)}}
	generating := running
	generating.Generation = &v1beta1.GenerationStatus{Pod: "p"}
	held := func(by machine.Reason) ChatFacts { return ChatFacts{Held: by} }
	blocked := func(by v1beta1.ErrorReason) ChatFacts {
		return ChatFacts{Blocked: &v1beta1.GenerationError{Reason: by, Message: "why"}}
	}
	missing := func(by v1beta1.ErrorReason) ChatFacts {
		return ChatFacts{Held: machine.ReferenceMissing,
			MissingReference: &v1beta1.GenerationError{Reason: by, Message: "why"}}
	}
	inTenMinutes := metav1.NewTime(noon.Add(10 * time.Minute))
	var idle v1beta1.ChatStatus
	approval, answer := pendingCall(v1beta1.RequiresApproval, ""), pendingCall(v1beta1.RequiresApproval,
		v1beta1.ApprovalInputRequired)
	decided := approval
	decided.Decision = &v1beta1.ToolDecision{}
	client := pendingCall(v1beta1.RequiresClient, "")
	for name, c := range map[string]struct {
		status v1beta1.ChatStatus
		facts  ChatFacts
		want   v1beta1.WaitFor
		until  *metav1.Time
	}{
		"nothing":     {v1beta1.ChatStatus{}, ChatFacts{}, "", nil},
		"a model":     {generating, ChatFacts{}, "", nil},
		"approval":    {acting(client, answer, approval), ChatFacts{}, v1beta1.WaitForApproval, &later},
		"an answer":   {acting(client, decided, answer), ChatFacts{}, v1beta1.WaitForAnswer, &later},
		"a client":    {acting(decided, client), ChatFacts{}, v1beta1.WaitForClientResult, &later},
		"a retry":     {running, held(machine.RetryNotDue), v1beta1.WaitForRetry, &later},
		"sub-chats":   {running, held(machine.SubChatsAtWork), v1beta1.WaitForSubChats, &later},
		"capacity":    {running, held(machine.NoCapacity), v1beta1.WaitForCapacity, nil},
		"a quota":     {running, held(machine.PodRejected), v1beta1.WaitForQuota, nil},
		"a workspace": {running, held(machine.WorkspaceStarting), v1beta1.WaitForWorkspace, nil},
		"MCP servers": {running, held(machine.ServersStarting), v1beta1.WaitForMCPServers, nil},
		"a class in a turn": {running, missing(v1beta1.ErrorChatClassNotFound), v1beta1.WaitForChatClass,
			&inTenMinutes},
		"a model in a turn": {running, missing(v1beta1.ErrorModelConfigNotFound), v1beta1.WaitForModelConfig,
			&inTenMinutes},
		"a suspension":         {running, held(machine.Suspended), v1beta1.WaitForResume, nil},
		"a pod":                {generating, ChatFacts{PodStarting: "image"}, v1beta1.WaitForPod, nil},
		"a configuration":      {idle, blocked(v1beta1.ErrorModelConfigNotFound), v1beta1.WaitForModelConfig, nil},
		"a class":              {idle, blocked(v1beta1.ErrorChatClassNotFound), v1beta1.WaitForChatClass, nil},
		"a parent":             {idle, blocked(v1beta1.ErrorParentNotFound), v1beta1.WaitForChat, nil},
		"a budget":             {idle, blocked(v1beta1.ErrorBudgetReached), v1beta1.WaitForBudget, nil},
		"an edit":              {idle, ChatFacts{HeldUntil: &later}, v1beta1.WaitForEdit, &later},
		"the name of a prompt": {idle, ChatFacts{NoPrompt: &NoPrompt{Message: "m"}}, v1beta1.WaitForMessage, nil},
		"the rest of a family": {v1beta1.ChatStatus{}, ChatFacts{Archiving: true}, v1beta1.WaitForSubChats, nil},
		"an archive":           {v1beta1.ChatStatus{Archived: true}, ChatFacts{}, v1beta1.WaitForUnarchive, nil},
	} {
		t.Run(name, func(t *testing.T) {
			st := *c.status.DeepCopy()
			c.facts.Now = noon
			Chat(&st, c.facts)
			ready := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady)
			switch w := st.Wait; {
			case w == nil:
				if c.want != "" {
					t.Errorf("it waits for nothing, and Ready says %s", ready.Reason)
				}
			case w.For != c.want || w.Reason != ready.Reason || w.Message != ready.Message || !w.Since.Time.Equal(noon):
				t.Errorf("it waits for %+v, and Ready says %s: %s", w, ready.Reason, ready.Message)
			case (w.Until == nil) != (c.until == nil) || w.Until != nil && !w.Until.Equal(c.until):
				t.Errorf("it waits until %v", w.Until)
			}
		})
	}
}

func TestWaitBeginsWhenItsReasonDoes(t *testing.T) {
	st := v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Generation: &v1beta1.GenerationStatus{Pod: "p"}}
	for _, step := range []struct {
		after    time.Duration
		starting string
		since    time.Duration
	}{{0, "scheduling", 0}, {time.Second, "image", 0}, {2 * time.Second, "", -1},
		{3 * time.Second, "image", 3 * time.Second}} {
		Chat(&st, ChatFacts{PodStarting: step.starting, Now: noon.Add(step.after)})
		switch {
		case step.since < 0 && st.Wait != nil:
			t.Errorf("after %s it waits for %+v", step.after, st.Wait)
		case step.since >= 0 && (st.Wait == nil || !st.Wait.Since.Time.Equal(noon.Add(step.since))):
			t.Errorf("after %s it waits for %+v", step.after, st.Wait)
		}
	}
}
