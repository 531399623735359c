// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

const guidance = "You can ask another model for advice"

var (
	asksAdvisor = call("advisor", `{"question":"May I delete it?"}`)
	advises     = modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Think("hm"), modelserver.Say("Make a copy first.")},
		Usage: &modelserver.Usage{Input: 500, Output: 20},
	}
	advised = advisor.Result{Type: advisor.TypeAdvice, Advice: "Make a copy first.", Model: "strong", RemainingUses: 2}
)

func withAdvisor(s *v1beta1.ChatSpec) {
	s.SystemPrompt = "Be careful with the archive."
	s.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true), ModelConfigRef: &v1beta1.ModelConfigReference{Name: "strong"}}
}

// newAdvised is a chat whose model asks its advisor until it has the results of so many calls. The advisor, model
// strong, answers with the reply.
func newAdvised(t *testing.T, times int, reply modelserver.Reply, change ...func(*v1beta1.ChatModelConfigSpec)) *talk {
	t.Helper()
	c := newTalk(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{Model: "strong"}, Reply: reply},
		{Match: modelserver.Match{MinToolResults: times}, Reply: readsBack().Rules[1].Reply},
		{Match: modelserver.Match{ToolOffered: "advisor"},
			Reply: said(modelserver.Step{ToolCalls: []modelserver.ToolCall{asksAdvisor}})},
		{Reply: said(modelserver.Say("I am on my own."))},
	}}, withAdvisor).with(advisor.Tool{}, builtin.CurrentTime{})
	c.Add("strong", append(change, func(s *v1beta1.ChatModelConfigSpec) {
		s.Model, s.MaxOutputTokens = "strong", nil
		s.Pricing = &v1beta1.Pricing{Currency: "EUR", InputPerMillion: "2", OutputPerMillion: "50"}
	})...)
	return c
}

// advice is the result of the only call.
func (c *talk) advice() (result advisor.Result, failed bool) {
	c.t.Helper()
	r := c.result()
	if err := json.Unmarshal([]byte(r.Output), &result); err != nil {
		c.t.Fatalf("the result is %s: %v", r.Output, err)
	}
	return result, r.IsError
}

func TestAdviceReachesTheNextStepAndIsAccounted(t *testing.T) {
	c := newAdvised(t, 1, advises)
	c.chat.Spec.Advisor.ReasoningEffort = v1beta1.EffortHigh
	c.ask("Clean up the archive.")
	check.Contains(t, c.LastBody(), guidance)
	c.shown.all = nil
	answer := c.execute()
	g, result := answer.Spec.Generation, answer.Spec.Parts[0].ToolResult
	check.Equal(t, "the account", &v1beta1.MessageGeneration{
		AdvisorUsage: &v1beta1.TokenUsage{InputTokens: 500, OutputTokens: 20, TotalTokens: 520}, Advice: 1,
		AdvisorModel: &v1beta1.ModelIdentity{Config: "strong", Provider: "openai-compatible", Name: "strong"},
		Cost:         &v1beta1.Cost{Currency: "EUR", MicroUnits: 2000},
	}, &v1beta1.MessageGeneration{
		AdvisorUsage: g.AdvisorUsage, Advice: g.Advice, AdvisorModel: g.AdvisorModel, Cost: g.Cost,
		Usage: g.Usage, Model: g.Model})
	sent := c.Bodies("strong")
	check.Equal(t, "times that the advisor was asked", 1, len(sent))
	check.Contains(t, sent[0], "Be careful with the archive.", "You are the advisor", "Clean up the archive.",
		"May I delete it?", `"max_tokens":4000`, `"reasoning_effort":"high"`)
	check.Lacks(t, sent[0], `"tools"`, `"tool_calls"`, guidance)
	check.Equal(t, "what is shown", "Make a copy first."+result.Output, c.shown.text())
	check.InOrder(t, c.reply().Spec.Text(), "I read: ", "Make a copy first.")
}

func TestAdviceIsLimitedPerTurn(t *testing.T) {
	c := newAdvised(t, 3, advises)
	c.chat.Spec.Advisor.MaxUses = new(int32(2))
	limit := advisor.Result{Type: advisor.TypeLimitReached,
		Error: "the advisor can be asked 2 times in a turn, and has been: go on without"}
	c.say("Clean up the archive.")
	for left := range int32(3) {
		want := advised
		if want.RemainingUses = 1 - left; left == 2 {
			want = limit
		}
		c.reply()
		got, failed := c.advice()
		check.Equal(t, "the advice", want, got)
		check.Equal(t, "failed", false, failed)
	}
	c.reply()
	check.Equal(t, "times that the advisor was asked", 2, len(c.Bodies("strong")))
	c.ask("Once more.")
	got, _ := c.advice()
	check.Equal(t, "the next turn's result", []any{advisor.TypeAdvice, 1}, []any{got.Type, got.RemainingUses})
	t.Log("Advice counts also if a summary stands for it.")
	c.ask("And again.")
	c.chat.Status.Turn.Advice = 2
	got, _ = c.advice()
	check.Equal(t, "the advice", limit, got)
}

func TestAdvisorIsOfferedWhereItCanBeAsked(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*v1beta1.Chat)
		offered bool
	}{
		"a chat that asks for it": {func(*v1beta1.Chat) {}, true},
		"a chat that does not":    {func(c *v1beta1.Chat) { c.Spec.Advisor = nil }, false},
		"it is turned off":        {func(c *v1beta1.Chat) { c.Spec.Advisor.Enabled = new(false) }, false},
		"it is denied": {func(c *v1beta1.Chat) {
			c.Spec.Tools = &v1beta1.ChatTools{Deny: []v1beta1.ToolPattern{"advisor"}}
		}, false},
		"it cannot be asked": {func(c *v1beta1.Chat) {
			c.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionAdvisorUnavailable, Status: metav1.ConditionTrue}}
		}, false},
		"a sub-chat": {func(c *v1beta1.Chat) { c.Spec.ParentRef = &v1beta1.ChatReference{Name: "root"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newAdvised(t, 1, advises)
			c.change(talk.chat)
			talk.ask("Clean up the archive.")
			body := talk.LastBody()
			check.Equal(t, "the tool is offered", c.offered, strings.Contains(body, `"name":"advisor"`))
			check.Equal(t, "the model is told of it", c.offered, strings.Contains(body, guidance))
		})
	}
}

func TestAdvisorCalledWithOthersRunsNothing(t *testing.T) {
	c := newTalk(t, readsBack(asksAdvisor, call("current_time", `{}`), call("ask_person", `{}`)), withAdvisor).
		with(advisor.Tool{}, builtin.CurrentTime{})
	c.chat.Spec.Tools = &v1beta1.ChatTools{Approval: []v1beta1.ToolPattern{"current_time"},
		Client: []v1beta1.ClientTool{{Name: "ask_person"}}}
	g := c.ask("Clean up the archive.").Spec.Generation
	check.Equal(t, "calls", [2]int32{3, 0}, [2]int32{g.PendingCalls, g.CallsRequiringAction})
	for i, want := range []string{"must be called alone", "was skipped", "was skipped"} {
		if i == 0 {
			c.execute()
		}
		r := c.history[len(c.history)-1].Spec.Parts[i].ToolResult
		check.Equal(t, "failed", true, r.IsError)
		check.Contains(t, r.Output, want)
	}
	check.Contains(t, c.reply().Spec.Text(), "must be called alone")
	check.Equal(t, "times that the advisor was asked", 0, len(c.Bodies("strong")))
}

func TestAdvisorSeesWhatTheModelSaw(t *testing.T) {
	c := newTalk(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "Hello"}, Reply: said(modelserver.Say("Hello, too."))},
		{Match: modelserver.Match{ToolOffered: "advisor"}, Reply: said(modelserver.Say("It looks unused."),
			modelserver.Step{ToolCalls: []modelserver.ToolCall{asksAdvisor}})},
	}}, withAdvisor).with(advisor.Tool{})
	c.chat.Spec.Advisor.ModelConfigRef, c.chat.Spec.Advisor.MaxOutputTokens = nil, new(int64(300))
	c.ask("Hello from the first.")
	c.ask("Hello from the second.")
	c.chat.Status.History.ContextStart = 2
	c.ask("Clean up the archive.")
	c.execute()
	body := c.LastBody()
	check.Contains(t, body, "Hello from the second", "Hello, too.", "Clean up the archive.", "It looks unused.",
		`"model":"scripted"`, `"max_tokens":77`)
	check.Lacks(t, body, "Hello from the first")
	check.Equal(t, "times that it reads the question", 1, strings.Count(body, "May I delete it?"))
}

func TestModelIsToldWhyThereIsNoAdvice(t *testing.T) {
	const question = "Clean up the archive."
	failing := func(status int) modelserver.Reply {
		return modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: status,
			Message: "You said: " + question + " Key " + modeltest.Key}}
	}
	budgeted := func(currency string) func(*v1beta1.Chat) {
		return func(c *v1beta1.Chat) {
			c.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: v1beta1.Currency(currency), Amount: "1"}}
			c.Status.Cost = []v1beta1.Cost{{Currency: "EUR", MicroUnits: 1_000_000}}
		}
	}
	for name, c := range map[string]struct {
		reply  modelserver.Reply
		config func(*v1beta1.ChatModelConfigSpec)
		chat   func(*v1beta1.Chat)
		want   string
		asked  int
	}{
		"a refusal that passes": {reply: failing(429), asked: 2,
			want: "(RateLimited). Go on without its advice, or ask again later."},
		"one that does not": {reply: failing(400), want: "(RequestRejected). Go on without its advice. ", asked: 1},
		"nothing said":      {reply: said(modelserver.Think("hm")), want: "strong ended its reply without text", asked: 2},
		"nothing within the limit": {reply: endedBy(modelserver.FinishLength, modelserver.Think("hm")), asked: 1,
			want: "Raise spec.advisor.maxOutputTokens"},
		"silence": {reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}},
			want:  "(ProviderTimeout)",
			asked: 1, config: modeltest.Impatient},
		"a wrong key": {reply: advises, want: "(AuthenticationFailed)", asked: 1,
			config: func(s *v1beta1.ChatModelConfigSpec) { s.APIKey.SecretKeyRef.Key = "wrong" }},
		"a missing key": {reply: advises, want: "(APIKeyMissing)",
			config: func(s *v1beta1.ChatModelConfigSpec) { s.APIKey.SecretKeyRef.Key = "none" }},
		"no such model": {reply: advises, want: "(ModelConfigNotFound)",
			chat: func(c *v1beta1.Chat) { c.Spec.Advisor.ModelConfigRef.Name = "gone" }},
		"no price for the budget":  {reply: advises, want: "has no prices in it", chat: budgeted("USD")},
		"a budget that is used up": {reply: advises, want: "(BudgetReached)", chat: budgeted("EUR")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			talk := newAdvised(t, 1, c.reply)
			if c.config != nil {
				talk = newAdvised(t, 1, c.reply, c.config)
			}
			talk.ask(question)
			if c.chat != nil {
				c.chat(talk.chat)
			}
			got, failed := talk.advice()
			check.Equal(t, "the result", advisor.Result{Type: advisor.TypeError, RemainingUses: 3, Error: got.Error,
				Model: got.Model}, got)
			check.Equal(t, "failed", true, failed)
			check.Contains(t, got.Error, c.want)
			check.Lacks(t, got.Error, modeltest.Key, "sk-wrong", question)
			check.Equal(t, "times that the advisor was asked", c.asked, len(talk.Bodies("strong")))
		})
	}
}

func TestCutAdviceIsMarked(t *testing.T) {
	cut := advises
	cut.Finish = modelserver.FinishLength
	c := newAdvised(t, 1, cut)
	c.ask("Clean up the archive.")
	got, _ := c.advice()
	check.Equal(t, "the advice",
		"Make a copy first.\n\n[The advice ends here: it reached its limit of tokens.]", got.Advice)
}

func TestInterruptionStopsTheAdvisor(t *testing.T) {
	hangs := advises
	hangs.Fault = &modelserver.Fault{Kind: modelserver.FaultHang, After: one}
	c := newAdvised(t, 1, hangs)
	c.ask("Clean up the archive.")
	m := c.interrupted(v1beta1.ActionExecuteTools, func() bool { return len(c.Bodies("strong")) == 1 })
	check.Equal(t, "the outcome", v1beta1.OutcomeInterrupted, m.Spec.Generation.Outcome)
	check.Contains(t, m.Spec.Parts[0].ToolResult.Output, "was interrupted")
	c.eventually("the call is over", func() bool { return c.Server.InFlight() == 0 })
}

func TestAnAdviceIsNotStoredAtItsProvider(t *testing.T) {
	for name, c := range map[string]struct{ options, want string }{
		"nothing said":   {`{}`, `{}`},
		"stored":         {`{"openai":{"store":true,"user":"u"}}`, `{"openai":{"user":"u"}}`},
		"not stored":     {`{"azure":{"store":false}}`, `{"azure":{}}`},
		"responses":      {`{"openaiResponses":{"store":true,"user":"u"}}`, `{"openaiResponses":{"user":"u"}}`},
		"azure's":        {`{"azureResponses":{"store":true}}`, `{"azureResponses":{}}`},
		"another option": {`{"openai":{"user":"u"}}`, `{"openai":{"user":"u"}}`},
		"no extra body":  {`{"vercel":{"user":"u"}}`, `{"vercel":{"user":"u"}}`},
		// These fields go into the request as they are.
		"stored by the request's own field": {
			`{"openaiCompatible":{"user":"u","extraBody":{"store":true,"seed":12345678901234567890}}}`,
			`{"openaiCompatible":{"user":"u","extraBody":{"seed":12345678901234567890}}}`},
		"of OpenRouter": {`{"openrouter":{"extraBody":{"store":true}}}`, `{"openrouter":{"extraBody":{}}}`},
		"of Vercel":     {`{"vercel":{"extraBody":{"store":true}}}`, `{"vercel":{"extraBody":{}}}`},
		"of Anthropic":  {`{"anthropic":{"extraBody":{"store":true}}}`, `{"anthropic":{"extraBody":{}}}`},
		"of Bedrock":    {`{"bedrock":{"extraBody":{"store":true,"a":1}}}`, `{"bedrock":{"extraBody":{"a":1}}}`},
		"a field of another field's own": {`{"openaiCompatible":{"extraBody":{"options":{"store":true}}}}`,
			`{"openaiCompatible":{"extraBody":{"options":{"store":true}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var given v1beta1.ProviderOptions
			check.OK(t, json.Unmarshal([]byte(c.options), &given))
			got, err := json.Marshal(withoutStore(&given))
			check.Equal(t, "error, result", []any{nil, c.want}, []any{err, string(got)})
			again, _ := json.Marshal(&given)
			check.Equal(t, "the configuration's own options", c.options, string(again))
		})
	}
	if withoutStore(nil) != nil {
		t.Error("options came from nowhere")
	}
}
