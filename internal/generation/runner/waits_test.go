// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/modelserver"
)

// waitsForSub is a model that waits for the chat sub where it can, and says what it got.
var waitsForSub = modelserver.Script{Rules: []modelserver.Rule{
	{Match: modelserver.Match{ToolOffered: "wait_agent", ToolResults: new(0)},
		Reply: modelserver.Reply{Steps: []modelserver.Step{
			{ToolCalls: []modelserver.ToolCall{{Name: "wait_agent", Arguments: []byte(`{"chat":"sub","timeout_seconds":60}`)}}},
		}}},
	{Match: modelserver.Match{ToolResults: new(0)},
		Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("I am alone.")}}},
	{Reply: modelserver.Reply{
		Steps: []modelserver.Step{{Text: &modelserver.Text{Value: "I read: {{.ToolResultsText}}"}}}}},
}}

func withWaitAgent(p *pod, o *runner.Options) {
	o.Tools = tools.NewRegistry(builtin.WaitAgent{Chat: o.Client.Chats(p.ns).Get, Message: o.Client.Messages(p.ns).Get})
}

func TestACallThatWaitsForASubChatIsNotedAndAnsweredFromTheCluster(t *testing.T) {
	t.Parallel()
	p := startPod(t, waitsForSub, withWaitAgent)
	plain := p.newChat("plain", nil)
	plain.ask("plain-prompt", "Ask somebody.")
	if got := textOf(t, plain.result()); got != "I am alone." {
		t.Errorf("a chat without sub-chats was offered the tool, and the model said %q", got)
	}

	root := p.newChat("root", nil)
	sub := p.newChat("sub", func(s *v1alpha1.ChatSpec) { s.ParentRef = &v1alpha1.ChatReference{Name: "root"} })
	sub.ask("sub-prompt", "What is it?")
	reply := sub.result()
	root.say("root-prompt", "Ask your sub-chat.")
	root.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "root-prompt"}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: "root-prompt", Length: 1}
		s.Generation = root.assignment(v1alpha1.ActionGenerateAssistant, 1)
		s.Internal.Attempt.HasSubChats = true
	})
	asked := root.result()
	g := asked.Spec.Generation
	if len(g.WaitingFor) != 1 || g.PendingCalls != 1 || g.CallsRequiringAction != 0 ||
		g.WaitingFor[0] != (v1alpha1.WaitingCall{ID: asked.Spec.Parts[0].ToolCall.ID, Chat: "sub", TimeoutSeconds: 60}) {
		t.Fatalf("the account is %+v", g)
	}

	sub.commit(reply, "")
	sub.write(func(s *v1alpha1.ChatStatus) {
		s.Phase = v1alpha1.ChatWaiting
		s.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonAnswered),
			LastTransitionTime: metav1.Now(),
		}}
	})
	root.commit(asked, v1alpha1.ActionExecuteTools)
	result := root.result().Spec.Parts[0].ToolResult
	if result.IsError || !strings.Contains(result.Output, `"report":"I am alone."`) {
		t.Errorf("the result is %+v", result)
	}
}
