// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
)

func TestRequiredActionMessageListsPendingTools(t *testing.T) {
	call := func(kind v1beta1.RequiredAction, name string) v1beta1.PendingToolCall {
		return v1beta1.PendingToolCall{Kind: kind, Name: name}
	}
	approval, client := v1beta1.RequiresApproval, v1beta1.RequiresClient
	decided := call(approval, "execute")
	decided.Decision = &v1beta1.ToolDecision{}
	for want, calls := range map[string][]v1beta1.PendingToolCall{
		"A client must bring the results of open_ticket: see status.requiresAction": {call(client, "open_ticket")},
		"People must decide about execute: see status.requiresAction": {
			call(approval, "execute"), call(approval, "execute")},
		"A client must bring the results of a, and people must decide about b: see status.requiresAction": {
			call(approval, "b"), call(client, "a"), decided},
		"People must decide about a, b, c, d, e and 2 more: see status.requiresAction": {
			call(approval, "g"), call(approval, "f"), call(approval, "e"), call(approval, "d"), call(approval, "c"),
			call(approval, "b"), call(approval, "a")},
		"People must decide about a [2Jb: see status.requiresAction": {call(approval, "a\x1b[2Jb")},
		"All calls are decided": {decided},
	} {
		if got := requiredOf(&v1beta1.RequiresActionStatus{ToolCalls: calls}); got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	}
}
