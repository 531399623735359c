// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// waitsFor is the one call that the chat waits for people about, once it does for that reason.
func (w *world) waitsFor(chat string, cause v1beta1.ApprovalCause, not ...string) v1beta1.PendingToolCall {
	w.t.Helper()
	var call v1beta1.PendingToolCall
	w.eventually("chat "+chat+" waits because of "+string(cause), func() bool {
		required := w.chat(chat).Status.RequiresAction
		if required == nil || len(required.ToolCalls) != 1 {
			return false
		}
		call = required.ToolCalls[0]
		return call.ApprovalCause == cause && (len(not) == 0 || call.ID != not[0])
	})
	return call
}

// kubectlChat runs the plug-in, and returns what it prints.
func (w *world) kubectlChat(args ...string) string {
	w.t.Helper()
	out, err := w.plugin(args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("kubectl chat %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPlanningChatChangesNothingBeforeApproval also loses the generation pod while people think.
func TestPlanningChatChangesNothingBeforeApproval(t *testing.T) {
	t.Parallel()
	write := map[string]any{"path": "plan.txt", "content": "SQLite"}
	w := newWorld(t, works(
		callOf("ask_user_question", map[string]any{"questions": []any{map[string]any{"question": "Which store?",
			"options": []any{map[string]any{"label": "Postgres"}, map[string]any{"label": "SQLite", "description": "A file."}}}}}),
		callOf("write_file", write),
		callOf("execute", map[string]any{"command": "ls -A"}),
		callOf("propose_plan", map[string]any{"plan": "1. Install Postgres."}),
		callOf("propose_plan", map[string]any{"plan": "1. Write `plan.txt`.\n2. Check it."}),
		callOf("write_file", write),
		callOf("execute", map[string]any{"command": "cat plan.txt"}),
	))
	w.template("shell")
	chat := &v1beta1.Chat{ObjectMeta: w.meta("c")}
	chat.Spec.Prompt, chat.Spec.Mode = "Store it.", v1beta1.ModePlan
	chat.Spec.Workspace = &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}
	w.create(chat)
	w.mayApprove()

	question := w.waitsFor("c", v1beta1.ApprovalInputRequired)
	if shown := w.kubectlChat("calls", "c"); !strings.Contains(shown,
		"answer (string): Which store?\n      |     - Postgres\n") {
		t.Errorf("people see %s", shown)
	}
	forced(t, w.generationPod())
	w.kubectlChat("answer", "c", question.ID+"=SQLite", "--digest", question.Digest)

	listing := w.waitsFor("c", v1beta1.ApprovalPlanMode)
	w.kubectlChat("approve", "c", listing.ID, "--digest", listing.Digest)
	first := w.waitsFor("c", v1beta1.ApprovalPlanProposed)
	w.kubectlChat("deny", "c", first.ID, "--comment", "No services, please.")
	second := w.waitsFor("c", v1beta1.ApprovalPlanProposed, first.ID)
	if shown := w.kubectlChat("calls", "c"); !strings.Contains(shown,
		"      | 1. Write `plan.txt`.\n      | 2. Check it.\n") {
		t.Errorf("people see %s", shown)
	}
	forced(t, w.generationPod())
	w.kubectlChat("approve", "c", second.ID, "--digest", second.Digest)

	if ready := w.ready("c", 17); !ready.Status.Turn.PlanApproved {
		t.Errorf("the turn is %+v", ready.Status.Turn)
	}
	for i, want := range []struct {
		isError bool
		says    string
	}{
		{false, `"answer":"SQLite"`},
		{true, "not active in this chat"},
		{false, `"output":""`},
		{true, "They said: No services, please."},
		{false, `"approved":true`},
		{false, "plan.txt"},
		{false, "SQLite"},
	} {
		if got := w.results("c")[i]; got.IsError != want.isError || !strings.Contains(got.Output, want.says) {
			t.Errorf("result %d is %+v, want %q", i, got, want.says)
		}
	}
	w.say("c", "c-2", "And now?")
	w.waitsFor("c", v1beta1.ApprovalInputRequired, question.ID)
	check.Equal(t, "in the next turn the mode", v1beta1.ModePlan, w.chat("c").EffectiveMode())
}

// TestAnAgentThatExploresActsUnderNoClass has a class whose tools chats may not choose.
func TestAnAgentThatExploresActsUnderNoClass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(callOf("spawn_agent", map[string]any{"type": "explore", "prompt": "The task"})))
	w.template("shell")
	class := w.coder(careful)
	class.Spec.Restrictions.Fields = append(class.Spec.Restrictions.Fields, v1beta1.FieldTools)
	w.create(class)
	w.inForce(class)
	w.starting("root")
	w.ready("root", 4)
	agents := w.agents("root")
	if len(agents) != 1 {
		t.Fatalf("%d agents", len(agents))
	}
	agent := agents[0].Name
	w.eventually("the agent was asked", func() bool {
		return slices.ContainsFunc(w.requests(), func(r modelserver.Record) bool {
			return strings.Contains(string(r.Body), "You explore:")
		})
	})
	for _, request := range w.requests() {
		body := string(request.Body)
		if explores := strings.Contains(body, "You explore:"); explores &&
			(strings.Contains(body, `"name":"execute"`) || !strings.Contains(body, `"name":"read_file"`)) {
			t.Errorf("agent %s is offered %s", agent, body)
		} else if !explores && !strings.Contains(body, `"name":"execute"`) {
			t.Errorf("the root is not offered commands: %s", body)
		}
	}
	check.Equal(t, agent, v1beta1.ModeExplore, agents[0].Spec.Mode)
}

// treeOf is a script by which the model of chat root starts so many agents, in as many replies as it takes, waits for
// all of them, and says what they have said.
func treeOf(agents int) modelserver.Script {
	call := func(name, arguments string) modelserver.ToolCall {
		text, _ := json.Marshal(arguments)
		return modelserver.ToolCall{Name: name, Arguments: text}
	}
	s := modelserver.Script{Rules: []modelserver.Rule{{Match: modelserver.Match{LastUserText: "task"},
		Reply: say("Done: {{.LastUserText}}.")}}}
	reply := func(results int, step modelserver.Step) {
		s.Rules = append(s.Rules, modelserver.Rule{
			Match: modelserver.Match{LastUserText: "Do it all", ToolResults: &results},
			Reply: modelserver.Reply{Steps: []modelserver.Step{step}}})
	}
	for from := 0; from < agents; from += v1beta1.MaxAgentChanges {
		var starts modelserver.Step
		for i := from; i < min(from+v1beta1.MaxAgentChanges, agents); i++ {
			kind := []v1beta1.AgentType{v1beta1.AgentGeneral, v1beta1.AgentExplore}[i%2]
			starts.ToolCalls = append(starts.ToolCalls,
				call("spawn_agent", fmt.Sprintf(`{"type":"%s","prompt":"The task %d"}`, kind, i)))
		}
		reply(from, starts)
	}
	var waits modelserver.Step
	for i := range agents { // Each result begins with {"chat":"root- and ten digits.
		waits.ToolCalls = append(waits.ToolCalls,
			call("wait_agent", fmt.Sprintf(`{"chat":"{{slice (index .ToolResults %d).Text 9 24}}"}`, i)))
	}
	reply(agents, waits)
	reply(2*agents, modelserver.Say("All is done."))
	return s
}

// starting is a chat whose model may start agents.
func (w *world) starting(name string) {
	w.t.Helper()
	chat := &v1beta1.Chat{ObjectMeta: w.meta(name)}
	chat.Spec.Prompt, chat.Spec.SubAgents = "Do it all", &v1beta1.SubAgentSettings{Enabled: new(true)}
	w.create(chat)
}

func TestAgentTreeResultSurvivesKillsAtEachStep(t *testing.T) {
	const agents = 10
	localnode.Needed(t)
	for name, kill := range map[string]func(*world, *step){
		"nothing": func(_ *world, s *step) { s.killed = true }, "the generator": killGenerator, "the manager": killTheManager,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, treeOf(agents))
			events := w.watch()
			w.starting("root")
			if steps := w.steps(events, "root", 8, nil, kill); len(steps) != 3 || slices.ContainsFunc(steps, func(s *step) bool {
				return !s.killed
			}) {
				t.Errorf("there were %d batches", len(steps))
			}
			below := w.agents("root")
			check.Equal(t, "agents", agents, len(below))
			for _, agent := range below {
				check.Equal(t, "messages of "+agent.Name, 2, agent.Status.History.Length)
			}
			results := w.results("root")
			if len(results) != 2*agents {
				t.Fatalf("there are %d results", len(results))
			}
			for i, r := range results[agents:] {
				if want := fmt.Sprintf("Done: The task %d.", i); r.IsError || !strings.Contains(r.Output, want) {
					t.Errorf("the report of agent %d is %s", i, r.Output)
				}
			}
			if requests := w.requests(); name != "the generator" && len(requests) != agents+4 {
				t.Errorf("models were asked %d times", len(requests))
			}
		})
	}
}
