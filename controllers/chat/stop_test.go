// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
)

func bringing(results ...v1alpha1.ToolResult) *v1alpha1.ChatMessage {
	m := &v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "results"}, Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleTool}}
	for i := range results {
		results[i].Output = "1"
		m.Spec.Parts = append(m.Spec.Parts, v1alpha1.MessagePart{Type: v1alpha1.PartToolResult, ToolResult: &results[i]})
	}
	return m
}

func TestTheFirstCallOfAClientThatSucceedsAndEndsTheTurnIsFound(t *testing.T) {
	right := func(id string) v1alpha1.ToolResult { return v1alpha1.ToolResult{ID: id} }
	wrong := func(id string) v1alpha1.ToolResult { return v1alpha1.ToolResult{ID: id, IsError: true} }
	for name, c := range map[string]struct {
		stopAfter []string
		results   *v1alpha1.ChatMessage
		want      string
	}{
		"no list":                        {nil, bringing(right("1"), right("2")), ""},
		"in the order of the calls":      {[]string{"page", "ticket"}, bringing(right("2"), right("1")), "ticket"},
		"the first has failed":           {[]string{"page", "ticket"}, bringing(wrong("1"), right("2")), "page"},
		"all have failed":                {[]string{"page", "ticket"}, bringing(wrong("1"), wrong("2")), ""},
		"another tool":                   {[]string{"deploy"}, bringing(right("1"), right("2")), ""},
		"what a client says it is":       {[]string{"deploy"}, bringing(v1alpha1.ToolResult{ID: "1", Name: "deploy"}, right("2")), ""},
		"a call that waits for approval": {[]string{"approved"}, bringing(right("1"), right("2")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			chat := busy()
			chat.Spec.Tools = &v1alpha1.ChatTools{StopAfter: c.stopAfter}
			chat.Status.RequiresAction = &v1alpha1.RequiresActionStatus{ToolCalls: []v1alpha1.PendingToolCall{
				{ID: "0", Name: "approved", Kind: v1alpha1.AwaitsApproval},
				{ID: "1", Name: "ticket", Kind: v1alpha1.AwaitsClient}, {ID: "2", Name: "page", Kind: v1alpha1.AwaitsClient},
			}}
			if got := examine(chat, c.results); got.Problem != "" || got.StoppedBy != c.want {
				t.Errorf("%q ends the turn, want %q: %s", got.StoppedBy, c.want, got.Problem)
			}
		})
	}
}

func TestResultsEndTheTurnBeforeTheirMessageSaysSo(t *testing.T) {
	chat := busy()
	chat.Status.History = v1alpha1.HistoryStatus{Version: 3, Head: "results", Length: 3}
	chat.Status.Turn = &v1alpha1.TurnStatus{
		Message: "a", HistoryVersion: 1, ContentHash: "hash",
		Results: &v1alpha1.MessagePlace{Message: "results", Parent: "c-1-1", Index: 2, HistoryVersion: 3, StoppedBy: "ticket"},
	}
	user := v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser}}
	reply := v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "c-1-1"}, Spec: v1alpha1.ChatMessageSpec{
		Role: v1alpha1.RoleAssistant, Parent: "a", Index: new(int64(1)),
		Generation: &v1alpha1.MessageGeneration{ChatUID: "uid", HistoryVersion: 1, Outcome: v1alpha1.OutcomeCompleted, PendingCalls: 1, AwaitingCalls: 1},
	}}
	kept, missing := whole(chat, []v1alpha1.ChatMessage{user, reply, *bringing(v1alpha1.ToolResult{ID: "1"})})
	if missing != 3 || len(kept) != 3 {
		t.Fatalf("%d messages are left, the first one missing is %d", len(kept), missing)
	}
	if got := plan.Rest(kept).Turn; got.StoppedBy != "ticket" || got.Results.StoppedBy != "ticket" || got.ContentHash != "hash" {
		t.Errorf("the turn is %+v", got)
	}
}
