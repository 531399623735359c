// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/modelserver"
)

// asksForAdvice is a model that asks its advisor until it has the results of times calls, and says then what it got.
// The advisor, model strong, answers with the reply.
func asksForAdvice(times int, reply modelserver.Reply) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{Model: "strong"}, Reply: reply},
		{Match: modelserver.Match{MinToolResults: times}, Reply: modelserver.Reply{Steps: []modelserver.Step{
			{Text: &modelserver.Text{Value: "I read: {{.ToolResultsText}}"}},
		}}},
		{Match: modelserver.Match{ToolOffered: "advisor"}, Reply: modelserver.Reply{Steps: []modelserver.Step{
			{ToolCalls: []modelserver.ToolCall{{Name: "advisor", Arguments: []byte(`{"question":"May I delete it?"}`)}}},
		}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("I am on my own.")}}},
	}}
}

var advises = modelserver.Reply{
	Steps: []modelserver.Step{modelserver.Think("hm"), modelserver.Say("Make a copy first.")},
	Usage: &modelserver.Usage{Input: 500, Output: 20},
}

// startAdvisedPod starts a pod that has the advisor, and a ChatModelConfig strong for it.
func startAdvisedPod(t *testing.T, script modelserver.Script, change func(*v1alpha1.ChatModelConfigSpec),
	options ...func(*runner.Options)) *pod {
	t.Helper()
	p := startPod(t, script, func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(advisor.Tool{}, builtin.CurrentTime{Now: o.Now})
		for _, set := range options {
			set(o)
		}
	})
	strong := modelConfig(p.ns, "strong", p.url)
	strong.Spec.Model, strong.Spec.MaxOutputTokens = "strong", nil
	strong.Spec.Pricing = &v1alpha1.Pricing{Currency: "EUR", InputPerMillion: "2", OutputPerMillion: "50"}
	if change != nil {
		change(&strong.Spec)
	}
	create(t, strong)
	return p
}

func withAdvisor(s *v1alpha1.ChatSpec) {
	s.SystemPrompt = "Be careful with the archive."
	s.Advisor = &v1alpha1.ChatAdvisor{Enabled: new(true), ModelConfigRef: &v1alpha1.ModelConfigReference{Name: "strong"}}
}

// requestsTo are the bodies of the requests to a model.
func (p *pod) requestsTo(model string) (bodies []string) {
	for _, r := range p.models.Requests() {
		if strings.Contains(string(r.Body), fmt.Sprintf("%q:%q", "model", model)) {
			bodies = append(bodies, string(r.Body))
		}
	}
	return bodies
}

// asked runs the calls of a reply and returns the message with their results.
func (c *conversation) asked(reply *v1alpha1.ChatMessage) *v1alpha1.ChatMessage {
	c.t.Helper()
	if n := reply.Spec.Generation.PendingCalls; n == 0 {
		c.t.Fatalf("the model called nothing: %+v", reply.Spec)
	}
	c.commit(reply, v1alpha1.ActionExecuteTools)
	return c.result()
}

// adviceOf is the result of the only call.
func adviceOf(t *testing.T, m *v1alpha1.ChatMessage) (*v1alpha1.ToolResult, advisor.Result) {
	t.Helper()
	if len(m.Spec.Parts) != 1 || m.Spec.Parts[0].ToolResult == nil {
		t.Fatalf("the step is %+v", m.Spec)
	}
	var result advisor.Result
	if err := json.Unmarshal([]byte(m.Spec.Parts[0].ToolResult.Output), &result); err != nil {
		t.Fatalf("the result is %s: %v", m.Spec.Parts[0].ToolResult.Output, err)
	}
	return m.Spec.Parts[0].ToolResult, result
}

func TestAdviceReachesTheModelInItsNextStep(t *testing.T) {
	t.Parallel()
	p := startAdvisedPod(t, asksForAdvice(1, advises), nil)
	c := p.newChat("advised", func(s *v1alpha1.ChatSpec) {
		withAdvisor(s)
		s.Advisor.ReasoningEffort = v1alpha1.EffortHigh
	})
	c.ask("advised-1", "Clean up the archive.")
	answer := c.asked(c.result())

	r, result := adviceOf(t, answer)
	if want := (advisor.Result{Type: advisor.TypeAdvice, Advice: "Make a copy first.", Model: "strong",
		RemainingUses: 2}); r.IsError || result != want {
		t.Errorf("the result is %+v", r)
	}
	g := answer.Spec.Generation
	if g.Usage != nil || g.AdvisorUsage == nil || g.AdvisorUsage.InputTokens != 500 || g.AdvisorUsage.OutputTokens != 20 {
		t.Errorf("the usage is %+v, the advisor's %+v", g.Usage, g.AdvisorUsage)
	}
	if g.Model != nil || g.AdvisorModel == nil ||
		*g.AdvisorModel != (v1alpha1.ModelIdentity{Config: "strong", Provider: string(v1alpha1.ProviderOpenAICompatible),
			Name: "strong"}) {
		t.Errorf("the models are %+v and %+v", g.Model, g.AdvisorModel)
	}
	if g.Cost == nil || *g.Cost != (v1alpha1.Cost{Currency: "EUR", MicroUnits: 2000}) {
		t.Errorf("the cost is %+v", g.Cost)
	}
	sent := p.requestsTo("strong")
	if len(sent) != 1 {
		t.Fatalf("the advisor was asked %d times", len(sent))
	}
	for _, text := range []string{"Be careful with the archive.", "You are the advisor", "Clean up the archive.",
		"May I delete it?", `"max_tokens":4000`, `"reasoning_effort":"high"`} {
		if !strings.Contains(sent[0], text) {
			t.Errorf("the advisor was not told %q", text)
		}
	}
	for _, text := range []string{`"tools"`, `"tool_calls"`, "You can ask another model for advice"} {
		if strings.Contains(sent[0], text) {
			t.Errorf("the advisor was sent %s", text)
		}
	}
	if text, _ := p.relay.heard(c.fence()); text != "Make a copy first."+r.Output {
		t.Errorf("those who watch saw %q, not the advice as it came and then the result", text)
	}

	c.commit(answer, v1alpha1.ActionGenerateAssistant)
	if got := textOf(t, c.result()); !strings.HasPrefix(got, "I read: ") || !strings.Contains(got, "Make a copy first.") {
		t.Errorf("the model said %q", got)
	}
	for _, body := range p.requestsTo("scripted") {
		if !strings.Contains(body, "You can ask another model for advice") {
			t.Error("the model was not told when to ask")
		}
	}
}

func TestATurnHasAsMuchAdviceAsItMay(t *testing.T) {
	t.Parallel()
	p := startAdvisedPod(t, asksForAdvice(3, advises), nil)
	c := p.newChat("limited", func(s *v1alpha1.ChatSpec) {
		withAdvisor(s)
		s.Advisor.MaxUses = new(int32(2))
	})
	c.ask("limited-1", "Clean up the archive.")
	for i, want := range []advisor.Result{
		{Type: advisor.TypeAdvice, Advice: "Make a copy first.", Model: "strong", RemainingUses: 1},
		{Type: advisor.TypeAdvice, Advice: "Make a copy first.", Model: "strong"},
		{Type: advisor.TypeLimitReached, Error: "the advisor can be asked 2 times in a turn, and has been: go on without"},
	} {
		answer := c.asked(c.result())
		if r, result := adviceOf(t, answer); r.IsError || result != want {
			t.Errorf("call %d: the result is %+v", i, r)
		}
		c.commit(answer, v1alpha1.ActionGenerateAssistant)
	}
	c.commit(c.result(), "")
	if n := len(p.requestsTo("strong")); n != 2 {
		t.Errorf("the advisor was asked %d times", n)
	}
	c.ask("limited-2", "Once more.")
	if _, result := adviceOf(t, c.asked(c.result())); result.Type != advisor.TypeAdvice || result.RemainingUses != 1 {
		t.Errorf("in the next turn the result is %+v", result)
	}
}

func TestTheClusterLimitsOrForbidsAdvice(t *testing.T) {
	t.Parallel()
	p := startAdvisedPod(t, asksForAdvice(3, advises), nil, func(o *runner.Options) { o.AdvisorUses = new(int32(1)) })
	c := p.newChat("bounded", withAdvisor)
	c.ask("bounded-1", "Clean up the archive.")
	if _, result := adviceOf(t, c.asked(c.result())); result.Type != advisor.TypeAdvice || result.RemainingUses != 0 {
		t.Errorf("the result is %+v", result)
	}
	off := startAdvisedPod(t, asksForAdvice(3, advises), nil, func(o *runner.Options) { o.AdvisorUses = new(int32(0)) })
	c = off.newChat("without", withAdvisor)
	c.ask("without-1", "Clean up the archive.")
	c.result()
	if body := string(off.models.Requests()[0].Body); strings.Contains(body, `"name":"advisor"`) {
		t.Errorf("the model is offered the advisor: %s", body)
	}
}

func TestAdviceCountsAlsoIfASummaryStandsForIt(t *testing.T) {
	t.Parallel()
	p := startAdvisedPod(t, asksForAdvice(3, advises), nil)
	c := p.newChat("summed", func(s *v1alpha1.ChatSpec) {
		withAdvisor(s)
		s.Advisor.MaxUses = new(int32(1))
	})
	c.ask("summed-1", "Clean up the archive.")
	answer := c.asked(c.result())
	if n := answer.Spec.Generation.Advice; n != 1 {
		t.Errorf("the step brought %d pieces of advice", n)
	}
	c.commit(answer, v1alpha1.ActionCompact)
	summary := c.result()
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn.Advice = 1
		s.History = v1alpha1.HistoryStatus{Version: s.History.Version + 1, Head: summary.Name, Length: s.History.Length + 1,
			ContextStart: s.History.Length}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	reply := c.result()
	c.write(func(s *v1alpha1.ChatStatus) {
		s.History.Version, s.History.Head, s.History.Length = s.History.Version+1, reply.Name, s.History.Length+1
		s.Generation = c.assignment(v1alpha1.ActionExecuteTools, 1)
	})
	if _, result := adviceOf(t, c.result()); result.Type != advisor.TypeLimitReached {
		t.Errorf("the result is %+v", result)
	}
}

func TestAReplyThatCallsTheAdvisorBesidesOthersRunsNothing(t *testing.T) {
	t.Parallel()
	script := asksForAdvice(3, advises)
	script.Rules[2].Reply.Steps[0].ToolCalls = append(script.Rules[2].Reply.Steps[0].ToolCalls,
		modelserver.ToolCall{Name: "current_time"}, modelserver.ToolCall{Name: "ask_person"})
	p := startAdvisedPod(t, script, nil)
	c := p.newChat("greedy", func(s *v1alpha1.ChatSpec) {
		withAdvisor(s)
		s.Tools = &v1alpha1.ChatTools{Approval: []v1alpha1.ToolPattern{"current_time"}, Client: []v1alpha1.ClientTool{{Name: "ask_person"}}}
	})
	c.ask("greedy-1", "Clean up the archive.")
	reply := c.result()
	if g := reply.Spec.Generation; g.PendingCalls != 3 || g.CallsRequiringAction != 0 {
		t.Errorf("%d of %d calls wait for somebody", g.CallsRequiringAction, g.PendingCalls)
	}
	answer := c.asked(reply)
	for i, want := range []string{"must be called alone", "was skipped", "was skipped"} {
		if r := answer.Spec.Parts[i].ToolResult; !r.IsError || !strings.Contains(r.Output, want) {
			t.Errorf("result %d is %+v", i, r)
		}
	}
	c.commit(answer, v1alpha1.ActionGenerateAssistant)
	if got := textOf(t, c.result()); !strings.Contains(got, "must be called alone") || len(p.requestsTo("strong")) != 0 {
		t.Errorf("the model said %q, and the advisor was asked %d times", got, len(p.requestsTo("strong")))
	}
}

func TestAdviceThatReachesItsLimitSaysSo(t *testing.T) {
	t.Parallel()
	cut := advises
	cut.Finish = modelserver.FinishLength
	p := startAdvisedPod(t, asksForAdvice(1, cut), nil)
	c := p.newChat("cut", withAdvisor)
	c.ask("cut-1", "Clean up the archive.")
	if _, result := adviceOf(t, c.asked(c.result())); result.Type != advisor.TypeAdvice ||
		result.Advice != "Make a copy first.\n\n[The advice ends here: it reached its limit of tokens.]" {
		t.Errorf("the result is %+v", result)
	}
}

func TestASubChatIsOnItsOwn(t *testing.T) {
	t.Parallel()
	p := startAdvisedPod(t, asksForAdvice(1, advises), nil)
	p.newChat("root", withAdvisor)
	c := p.newChat("sub", func(s *v1alpha1.ChatSpec) {
		withAdvisor(s)
		s.ParentRef = &v1alpha1.ChatReference{Name: "root"}
	})
	c.ask("sub-1", "Clean up the archive.")
	if got := textOf(t, c.result()); got != "I am on my own." {
		t.Errorf("the model said %q", got)
	}
	if body := p.lastBody(); strings.Contains(body, "advice") {
		t.Errorf("the model was told of advice: %s", body)
	}
}

func TestTheAdvisorSeesWhatTheModelSaw(t *testing.T) {
	t.Parallel()
	script := asksForAdvice(1, advises)
	script.Rules = append([]modelserver.Rule{{Match: modelserver.Match{LastUserText: "Hello"},
		Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Hello, too.")}}}}, script.Rules...)
	for i := range script.Rules { // The model says something before it asks.
		if steps := script.Rules[i].Reply.Steps; len(steps) > 0 && len(steps[0].ToolCalls) > 0 {
			script.Rules[i].Reply.Steps = append([]modelserver.Step{modelserver.Say("It looks unused.")}, steps...)
		}
	}
	p := startAdvisedPod(t, script, nil)
	c := p.newChat("seen", func(s *v1alpha1.ChatSpec) {
		withAdvisor(s)
		s.Advisor.ModelConfigRef, s.Advisor.MaxOutputTokens = nil, new(int64(300))
	})
	for _, name := range []string{"seen-1", "seen-2"} {
		c.ask(name, "Hello from "+name)
		c.commit(c.result(), "")
	}
	c.ask("seen-3", "Clean up the archive.")
	c.write(func(s *v1alpha1.ChatStatus) { // The first two messages are out of context.
		s.History.Version++
		s.History.ContextStart = 2
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	reply := c.result()
	c.write(func(s *v1alpha1.ChatStatus) {
		s.History.Version++
		s.History.Head, s.History.Length = reply.Name, s.History.Length+1
		s.Generation = c.assignment(v1alpha1.ActionExecuteTools, 1)
	})
	c.result()
	body := p.lastBody()
	for _, text := range []string{"Hello from seen-2", "Hello, too.", "Clean up the archive.", "It looks unused.", "May I delete it?",
		`"model":"scripted"`, `"max_tokens":77`} {
		if !strings.Contains(body, text) {
			t.Errorf("the advisor was not sent %s", text)
		}
	}
	if strings.Contains(body, "Hello from seen-1") || strings.Count(body, "May I delete it?") != 1 {
		t.Errorf("the advisor was sent %s", body)
	}
}
