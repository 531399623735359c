// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/internal/tools/planning"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// input returns the input of the call.
func input(_ context.Context, call tools.Call) (string, error) { return call.Input, nil }

// kindsOfTools are one tool each: of Parley, with approval, of an MCP server, and of the client.
var kindsOfTools = []string{"own", "approved", "s__own", "client"}

// withEveryKind is a chat that has all kindsOfTools, and whose model makes these calls.
func withEveryKind(t *testing.T, calls ...modelserver.ToolCall) *talk {
	t.Helper()
	c, s := newServed(t, readsBack(calls...))
	s.has("own", "", repeats)
	c.chat.Spec.MCPServers = append(c.chat.Spec.MCPServers, v1beta1.MCPServer{Name: "t", URL: s.url})
	c.chat.Spec.Tools = &v1beta1.ChatTools{Approval: []v1beta1.ToolPattern{"approved"},
		Client: []v1beta1.ClientTool{{Name: "client"}}}
	return c.with(doing{name: "own", run: input}, doing{name: "approved", run: input}, doing{name: "idle",
		Traits: tools.Traits{UsefulTo: func(*v1beta1.Chat) bool { return false }}})
}

func TestInputOfACallIsOneObject(t *testing.T) {
	for name, c := range map[string]struct{ input, refusal string }{
		"empty": {"", ""}, "blank": {" \n", ""}, "null": {"null", ""}, "object": {"{}", ""},
		"text":   {"not JSON", "not JSON (invalid character"},
		"half":   {`{"a":`, "not JSON (unexpected end"},
		"twice":  {`{} {}`, "not JSON (invalid character"},
		"string": {`"{\"a\":1}"`, "a JSON string: send the object itself, without quotes around it"},
		"list":   {` [{}]`, "a list"}, "number": {"7", "a number"}, "boolean": {"true", "a boolean"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []modelserver.ToolCall
			for _, tool := range kindsOfTools {
				calls = append(calls, call(tool, jsonOf(t, c.input))) // A string is sent as the text that it contains.
			}
			talk := withEveryKind(t, calls...)
			reply := talk.ask("Do it.")
			want := []v1beta1.ToolCall{{}, {RequiresAction: v1beta1.RequiresApproval}, {},
				{RequiresAction: v1beta1.RequiresClient}}
			for i := range want {
				if want[i].Input = "{}"; c.refusal != "" {
					want[i] = v1beta1.ToolCall{Input: c.input, Refusal: v1beta1.RefusalInputInvalid}
				}
				got := *toolCall(reply, i)
				got.ID, got.Name = "", ""
				check.Equal(t, kindsOfTools[i], want[i], got)
			}
			for i, part := range talk.execute().Spec.Parts {
				got := part.ToolResult
				if check.Equal(t, "failed", c.refusal != "", got.IsError); c.refusal == "" {
					check.Equal(t, "the result", "{}", got.Output)
					continue
				}
				check.Contains(t, got.Output, fmt.Sprintf("tool %q was not run: its input must be a JSON object, but is %s",
					kindsOfTools[i], c.refusal))
			}
			if c.refusal != "" {
				check.Equal(t, "the next reply", v1beta1.OutcomeCompleted, talk.reply().Spec.Generation.Outcome)
			}
		})
	}
}

func TestUnknownToolNamesThoseOnOffer(t *testing.T) {
	for _, called := range []string{"weather", "s__weather"} {
		c := withEveryKind(t, call(called, "{}"))
		c.ask("Weather?")
		want := offered(t, c.LastBody())
		got := c.result()
		said, list, _ := strings.Cut(got.Output, "; the tools on offer are: ")
		names := strings.Split(list, ", ")
		slices.Sort(names)
		check.Equal(t, "the tools on offer", want, names)
		check.Equal(t, "the result", fmt.Sprintf("tool %q does not exist", called), said)
		check.Contains(t, list, "t__own")
	}
}

func approving(s *v1beta1.ChatSpec) {
	s.Tools = &v1beta1.ChatTools{ToolPolicy: v1beta1.ToolPolicy{Approval: []v1beta1.ToolPattern{"execute"}}}
}

func TestCallTooLargeToShowIsRefused(t *testing.T) {
	c := newTalk(t, readsBack(call("execute", `{"command":"echo ls`+strings.Repeat(" ", 17000)+`; echo hidden > f"}`)),
		approving).with(doing{name: "execute"})
	reply := c.ask("Look.")
	call := toolCall(reply, 0)
	check.Equal(t, "refusal and action", []any{v1beta1.RefusalInputTooLarge, v1beta1.RequiredAction("")},
		[]any{call.Refusal, call.RequiresAction})
	check.Equal(t, "calls that wait", 0, int(reply.Spec.Generation.CallsRequiringAction))
	check.Contains(t, c.result().Output, "bytes of input do not fit into the 16384 that people are shown")
}

func TestOnlyApprovedInputRuns(t *testing.T) {
	for seen, want := range map[string]string{`{"command":"ls"}`: "done", `{"command":"rm"}`: "error"} {
		c := newTalk(t, readsBack(call("execute", `{"command": "ls"}`)), approving).with(doing{name: "execute"})
		approved := *toolCall(c.ask("Look."), 0)
		approved.Input = seen
		c.decide(&approved, v1beta1.DecisionApprove)
		m := c.execute()
		got := m.Spec.Parts[0].ToolResult
		check.Equal(t, "ran "+seen, want == "done", got.Output == "done" && !got.IsError)
		check.Equal(t, "who decided", "anna", m.Spec.Generation.Decisions[0].By)
	}
}

func TestFirstToolThatSucceedsAndStopsIsNoted(t *testing.T) {
	for name, c := range map[string]struct {
		stopAfter []string
		decision  v1beta1.ApprovalDecision
		want      string
	}{
		"none":                         {},
		"its own":                      {stopAfter: []string{"other", "current_time"}, want: "current_time"},
		"another":                      {stopAfter: []string{"other"}},
		"one that fails":               {stopAfter: []string{"launch"}},
		"one that fails, and another":  {stopAfter: []string{"launch", "current_time"}, want: "current_time"},
		"one that people have allowed": {[]string{"current_time"}, v1beta1.DecisionApprove, "current_time"},
		"one that people have denied":  {[]string{"current_time"}, v1beta1.DecisionDeny, ""},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newTalk(t, usesClock, func(s *v1beta1.ChatSpec) {
				if s.Tools = (&v1beta1.ChatTools{StopAfter: c.stopAfter}); c.decision != "" {
					s.Tools.Approval = []v1beta1.ToolPattern{"current_time"}
				}
			})
			calls := talk.ask("What time is it?")
			if c.decision != "" {
				talk.decide(toolCall(calls, 0), c.decision)
			}
			results := talk.execute()
			check.Equal(t, "the tools that stop the turn", []string{"", c.want},
				[]string{calls.Spec.Generation.StoppedBy, results.Spec.Generation.StoppedBy})
			check.Equal(t, "results", 2, len(results.Spec.Parts))
		})
	}
}

func TestInterruptedBatchStopsNoTurn(t *testing.T) {
	begun := make(chan struct{})
	c := newTalk(t, readsBack(call("plan", `{}`), call("hang", `{}`)), func(s *v1beta1.ChatSpec) {
		s.Tools = &v1beta1.ChatTools{StopAfter: []string{"plan", "hang"}}
	}).with(doing{name: "plan"}, doing{name: "hang", run: func(ctx context.Context, _ tools.Call) (string, error) {
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	}})
	c.ask("Make a plan.")
	m := c.interrupted(v1beta1.ActionExecuteTools, func() bool { <-begun; return true })
	check.Equal(t, "the outcome", []any{v1beta1.OutcomeInterrupted, ""},
		[]any{m.Spec.Generation.Outcome, m.Spec.Generation.StoppedBy})
	check.Equal(t, "failed", []bool{false, true},
		[]bool{m.Spec.Parts[0].ToolResult.IsError, m.Spec.Parts[1].ToolResult.IsError})
}

func TestResultIsShownWhenItsCallEnds(t *testing.T) {
	release, batch := make(chan struct{}), make(chan *v1beta1.ChatMessage, 1)
	c := newTalk(t, readsBack(call("fast", `{}`), call("slow", `{}`))).with(doing{name: "fast"},
		doing{name: "slow", run: func(_ context.Context, call tools.Call) (string, error) {
			call.Show("half of it")
			<-release
			return "done", nil
		}})
	for _, part := range c.ask("Do both.").Spec.Parts {
		check.Equal(t, "the call has no time", false, part.StartedAt.IsZero())
	}
	c.shown.all = nil
	go func() { batch <- c.execute() }()
	c.eventually("the fast result and the slow call's output are shown", func() bool {
		result, output := false, false
		for _, part := range c.shown.parts() {
			result = result || part.Type == parts.ToolResult && part.Name == "fast" && part.Text == "done" && !part.At.IsZero()
			output = output || part.Type == parts.ToolOutput && part.Name == "slow" && part.Text == "half of it"
		}
		return result && output
	})
	check.Equal(t, "batches that have ended", 0, len(batch))
	close(release)
	for _, part := range (<-batch).Spec.Parts {
		check.Equal(t, "call", []any{false, false},
			[]any{part.StartedAt.IsZero(), part.FinishedAt.Time.Before(part.StartedAt.Time)})
	}
	seen := map[parts.Type]int{}
	for _, part := range c.shown.parts() {
		seen[part.Type]++
	}
	check.Equal(t, "what is shown", map[parts.Type]int{parts.ToolStart: 2, parts.ToolOutput: 1, parts.ToolResult: 2}, seen)
}

func TestWaitForSubChatIsNotedAndAnswered(t *testing.T) {
	c := newTalk(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolOffered: "wait_agent", ToolResults: new(0)},
			Reply: said(modelserver.Call("wait_agent", `{"chat":"sub","timeout_seconds":60}`))},
		{Reply: said(modelserver.Say("I am alone."))},
	}}).with(builtin.WaitAgent{
		Chat: func(context.Context, string) (*v1beta1.Chat, error) {
			return chattest.Chat("sub", chattest.ChildOf("c"), func(sub *v1beta1.Chat) {
				sub.Status.Phase, sub.Status.History.Head = v1beta1.ChatWaiting, "last"
				sub.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue,
					Reason: string(v1beta1.ReasonAnswered)}}
			}), nil
		},
		Message: func(context.Context, string) (*v1beta1.ChatMessage, error) {
			return chattest.Generated("last", v1beta1.RoleAssistant, chattest.Says("It is noon.")), nil
		},
	})
	check.Equal(t, "a chat without sub-chats", "I am alone.", c.ask("Ask somebody.").Spec.Text())
	c.chat.Status.Internal.Attempt.HasSubChats = true
	asked := c.ask("Ask your sub-chat.")
	g := asked.Spec.Generation
	check.Equal(t, "what is waited for",
		[]v1beta1.WaitingCall{{ID: toolCall(asked, 0).ID, Chat: "sub", TimeoutSeconds: 60}}, g.WaitingFor)
	check.Equal(t, "calls", []int32{1, 0}, []int32{g.PendingCalls, g.CallsRequiringAction})
	check.Contains(t, c.result().Output, `"report":"It is noon."`)
}

// Security (a model in mode Plan or Explore): cannot run a command or a tool of an MCP server before a person approves
// the call.
func TestPlanningNeedsApprovalUntilThePlanHasIt(t *testing.T) {
	looking := []string{"ask_user_question", "command", "propose_plan"}
	for name, c := range map[string]struct {
		approved bool
		called   string
		offered  []string
		want     v1beta1.ToolCall
	}{
		"a plan": {false, "propose_plan", looking,
			v1beta1.ToolCall{RequiresAction: v1beta1.RequiresApproval, ApprovalCause: v1beta1.ApprovalPlanProposed}},
		"a command": {false, "command", looking,
			v1beta1.ToolCall{RequiresAction: v1beta1.RequiresApproval, ApprovalCause: v1beta1.ApprovalPlanMode}},
		"what acts":                     {false, "write", looking, v1beta1.ToolCall{Refusal: v1beta1.RefusalNotAllowed}},
		"a command of an approved plan": {true, "command", []string{"command", "write"}, v1beta1.ToolCall{}},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newTalk(t, readsBack(call(c.called, `{"plan":"Do it."}`)),
				func(s *v1beta1.ChatSpec) { s.Mode = v1beta1.ModePlan }).with(append(planning.Tools(),
				doing{name: "command", Traits: tools.Traits{Plan: tools.WithApproval}}, doing{name: "write"})...)
			talk.say("Do it.")
			talk.chat.Status.Turn.PlanApproved = c.approved
			got := *toolCall(talk.reply(), 0)
			check.Equal(t, "the tools on offer", c.offered, offered(t, talk.LastBody()))
			check.Equal(t, "the model is told to plan", !c.approved, strings.Contains(talk.LastBody(), "You plan:"))
			got.ID, got.Name, got.Input = "", "", ""
			check.Equal(t, "the call", c.want, got)
		})
	}
}
