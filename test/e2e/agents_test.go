// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

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
	for from := 0; from < agents; from += v1alpha1.MaxAgentChanges {
		var starts modelserver.Step
		for i := from; i < min(from+v1alpha1.MaxAgentChanges, agents); i++ {
			kind := []v1alpha1.AgentType{v1alpha1.AgentGeneral, v1alpha1.AgentExplore}[i%2]
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
	chat := &v1alpha1.Chat{ObjectMeta: w.meta(name)}
	chat.Spec.Prompt, chat.Spec.SubAgents = "Do it all", &v1alpha1.SubAgentSettings{Enabled: new(true)}
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
			w.starting("root")
			if steps := w.steps("root", 8, nil, kill); len(steps) != 3 || slices.ContainsFunc(steps, func(s *step) bool {
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
