// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"slices"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

func TestRefusedCallsWaitForNothing(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "run", Traits: tools.Traits{NeedsWorkspace: true}},
		fake{name: "wait", Traits: waits})
	check.Equal(t, "tools of the workspace", []string{"run"}, registry.InWorkspace())
	calls := callsOf("run wait")
	for _, refusal := range []v1alpha1.CallRefusal{"", v1alpha1.RefusalInputInvalid} {
		calls[0].Refusal, calls[1].Refusal = refusal, refusal
		needs, waiting := registry.NeedWorkspace(&v1alpha1.Chat{}, calls), registry.WaitingCalls(nil, calls)
		if runs := refusal == ""; needs != runs || len(waiting) > 0 != runs {
			t.Errorf("refused by %q, they need a workspace: %t, and wait for %v", refusal, needs, waiting)
		}
	}
}

func TestCallsWaitForSubChatsUpToLimit(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "clock"}, fake{name: "wait", Traits: waits})
	calls := []v1alpha1.ToolCall{
		{ID: "1", Name: "clock", Input: "x"}, {ID: "2", Name: "wait", Input: "x"}, {ID: "3", Name: "wait"},
		{ID: "4", Name: "unknown", Input: "x"},
		{ID: "5", Name: "wait", Input: "y", RequiresAction: v1alpha1.RequiresApproval},
	}
	check.Equal(t, "waits", []v1alpha1.WaitingCall{
		{ID: "2", Chat: "x", TimeoutSeconds: 60},
		{ID: "5", Chat: "y", TimeoutSeconds: 60, RequiresAction: v1alpha1.RequiresApproval},
	}, registry.WaitingCalls(nil, calls))
	check.Equal(t, "waits of a forbidden tool", nil, registry.WaitingCalls(allowing("clock").Spec.Tools, calls))
	many := slices.Repeat(calls[1:2], v1alpha1.MaxWaitingCalls+1)
	check.Equal(t, "number of waits", v1alpha1.MaxWaitingCalls, len(registry.WaitingCalls(nil, many)))
}
