// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// TestConcurrentCommandsOfTwentyChatsStayIsolated: each chat has a workspace of its own, and its model makes ten
// calls in one reply.
func TestConcurrentCommandsOfTwentyChatsStayIsolated(t *testing.T) {
	const chats, commands = 20, 10
	var calls []modelserver.ToolCall
	for i := range commands {
		calls = append(calls, callOf("execute", map[string]any{
			"command": fmt.Sprintf("echo $WHO begins %d | tee out-%d; sleep 1; cat out-%d; ls | wc -l", i, i, i)}))
	}
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: calls}}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Done.")}}},
	}})
	w.template("shell")
	for n := range chats {
		name := fmt.Sprintf("c-%d", n)
		w.create(&v1alpha1.Chat{ObjectMeta: w.meta(name), Spec: v1alpha1.ChatSpec{Prompt: "Work.",
			Workspace: &v1alpha1.WorkspaceSource{PodTemplateRef: &v1alpha1.WorkspaceTemplateReference{Name: "shell",
				Parameters: []v1alpha1.WorkspaceParameter{{Name: "who", Value: name}}}}}})
	}
	for n := range chats {
		name := fmt.Sprintf("c-%d", n)
		w.ready(name, 4)
		results := w.results(name)
		if len(results) != commands {
			t.Errorf("chat %s has %d results", name, len(results))
			continue
		}
		for i, got := range results {
			line := fmt.Sprintf("%s begins %d\\n", name, i)
			if strings.Count(got.Output, line) != 2 || !strings.Contains(got.Output, `"exit_code":0`) {
				t.Errorf("result %d of chat %s is %s", i, name, got.Output)
			}
		}
	}
	t.Run("in bounded memory", func(t *testing.T) {
		localnode.Needed(t)
		w.expectPeak(t, podspec.ComponentGeneration, generator, 96)
		w.expectPeak(t, podspec.ComponentWorkspace, agentInit, 32)
	})
}
