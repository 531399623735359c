// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/planning"
	"parley.dev/parley/test/modelserver"
)

// TestAModelThatPlansIsToldSoAndWhatItCallsWaitsForPeople also shows what it may do once its plan is approved.
func TestAModelThatPlansIsToldSoAndWhatItCallsWaitsForPeople(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, func(string)) error { return nil }
	script := func(calls ...modelserver.ToolCall) modelserver.Script {
		return modelserver.Script{Rules: []modelserver.Rule{
			{Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: calls}}}},
		}}
	}
	for name, c := range map[string]struct {
		approved     bool
		call         modelserver.ToolCall
		offered      []string
		told         bool
		wantCause    v1alpha1.ApprovalCause
		wantRequired v1alpha1.RequiredAction
	}{
		"a plan": {false, modelserver.ToolCall{Name: "propose_plan", Arguments: []byte(`{"plan":"Do it."}`)},
			[]string{"ask_user_question", "command", "propose_plan"}, true,
			v1alpha1.ApprovalPlanProposed, v1alpha1.RequiresApproval},
		"a command": {false, modelserver.ToolCall{Name: "command", Arguments: []byte(`{}`)},
			[]string{"ask_user_question", "command", "propose_plan"}, true, v1alpha1.ApprovalPlanMode, v1alpha1.RequiresApproval},
		"what acts": {false, modelserver.ToolCall{Name: "write", Arguments: []byte(`{}`)},
			[]string{"ask_user_question", "command", "propose_plan"}, true, "", ""},
		"a command of an approved plan": {true, modelserver.ToolCall{Name: "command", Arguments: []byte(`{}`)},
			[]string{"command", "write"}, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, script(c.call), func(_ *pod, o *runner.Options) {
				o.Tools = tools.NewRegistry(append(planning.Tools(),
					with{tools.Traits{Plan: tools.WithApproval}, doing{"command", nothing}}, doing{"write", nothing})...)
			})
			chat := p.newChat("plans", func(s *v1alpha1.ChatSpec) { s.Mode = v1alpha1.ModePlan })
			chat.say("plans-1", "Do it.")
			chat.write(func(s *v1alpha1.ChatStatus) {
				s.Turn = &v1alpha1.TurnStatus{Message: "plans-1", PlanApproved: c.approved}
				s.History = v1alpha1.HistoryStatus{Version: 1, Head: "plans-1", Length: 1}
				s.Generation = chat.assignment(v1alpha1.ActionGenerateAssistant, 1)
			})
			reply := chat.result()
			var sent struct {
				Messages []struct{ Role, Content string }
				Tools    []struct{ Function struct{ Name string } }
			}
			if err := json.Unmarshal(p.models.Requests()[0].Body, &sent); err != nil {
				t.Fatal(err)
			}
			var offered []string
			for _, tool := range sent.Tools {
				offered = append(offered, tool.Function.Name)
			}
			if !slices.Equal(offered, c.offered) || strings.Contains(sent.Messages[0].Content, "You plan:") != c.told {
				t.Errorf("offered %v, and told %q", offered, sent.Messages[0].Content)
			}
			call := reply.Spec.Parts[0].ToolCall
			if forbidden := c.call.Name == "write"; (call.Refusal == v1alpha1.RefusalNotAllowed) != forbidden {
				t.Errorf("the call is refused by %q", call.Refusal)
			}
			if call.RequiresAction != c.wantRequired || call.ApprovalCause != c.wantCause {
				t.Errorf("the call requires %q because of %q", call.RequiresAction, call.ApprovalCause)
			}
		})
	}
}
