// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cost"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/compaction"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/modelconfig"
	"parley.dev/parley/internal/parts"
	"parley.dev/parley/internal/tools"
)

// advice is what asking the advisor has used up, which model that was, and what it warned of.
type advice struct {
	target   *target
	usage    v1alpha1.TokenUsage
	warnings []string
	// given is how many pieces of advice came of it.
	given int32
}

// withAdvisorInForce is the chat with the advisor that it has by its own word and by that of the ChatModelConfig which it names.
// While that one cannot be asked, a model is not offered it. A call that has been made is answered: by why there is no advice.
func (r *Runner) withAdvisorInForce(chat *v1alpha1.Chat) *v1alpha1.Chat {
	var configs []v1alpha1.ChatModelConfig
	for _, object := range r.configs.GetStore().List() {
		configs = append(configs, *object.(*v1alpha1.ChatModelConfig))
	}
	answers, _ := modelconfig.Resolve(configs, &chat.Spec)
	advised := *chat
	advised.Spec.Advisor = modelconfig.Advisor(&chat.Spec, answers)
	unavailable := meta.IsStatusConditionTrue(chat.Status.Conditions, v1alpha1.ConditionAdvisorUnavailable)
	if unavailable && chat.Status.Generation.Action != v1alpha1.ActionExecuteTools {
		advised.Spec.Advisor = nil
	}
	return &advised
}

// guidance are the blocks of the system message about tools. The advisor is not told how to ask itself.
func (a *attempt) guidance() []string {
	if a.chat.Status.Generation.Action == v1alpha1.ActionExecuteTools {
		return nil
	}
	return advisor.Guidance(a.chat)
}

// consult answers a call of the advisor. The chat has one: otherwise its call would not be run.
func (a *attempt) consult(ctx context.Context, messages []v1alpha1.ChatMessage, call tools.Call) advisor.Result {
	spec := a.chat.Spec.Advisor
	remaining := max(0, spec.MaxUsesOrDefault()-a.adviceSoFar(messages))
	if remaining == 0 {
		return advisor.Result{
			Type:  advisor.TypeLimitReached,
			Error: fmt.Sprintf("the advisor can be asked %d times in a turn, and has been: go on without", spec.MaxUsesOrDefault()),
		}
	}
	question, err := advisor.Question(call.Input)
	if err != nil {
		return advisor.Result{Type: advisor.TypeError, Error: err.Error(), RemainingUses: remaining}
	}
	text, failure := a.advise(ctx, messages, question, call.Show)
	result := advisor.Result{Type: advisor.TypeAdvice, Advice: text, RemainingUses: remaining - 1}
	if failure != nil {
		result = advisor.Result{Type: advisor.TypeError, Error: told(failure), RemainingUses: remaining}
	} else {
		a.advice.given++
	}
	if a.advice.target != nil {
		result.Model = a.advice.target.config.Spec.Model
	}
	return result
}

// adviceSoFar is how many pieces of advice the turn has had, also such as a summary stands for.
func (a *attempt) adviceSoFar(messages []v1alpha1.ChatMessage) int32 {
	used := advisor.Used(messages)
	if turn := a.chat.Status.Turn; turn != nil {
		used = max(used, turn.Advice)
	}
	return used
}

// told is the error as the model reads it, which cannot do what it asks people to do.
func told(e *v1alpha1.GenerationError) string {
	goOn := "Go on without its advice"
	if e.Retryable {
		goOn += ", or ask again later"
	}
	return fmt.Sprintf("The advisor gave no advice (%s). %s. For the people of this chat: %s", e.Reason, goOn, e.Text())
}

// cutAdvice marks an advice that is not whole.
const cutAdvice = "\n\n[The advice ends here: it reached its limit of tokens.]"

// advise asks the advisor, without tools.
func (a *attempt) advise(ctx context.Context, messages []v1alpha1.ChatMessage, question string, show func(string)) (string, *v1alpha1.GenerationError) {
	t, err := a.advisorTarget(ctx)
	if err != nil {
		return "", err
	}
	built, err := a.seen(ctx, t, messages)
	if err != nil {
		return "", err
	}
	a.advice.target = t
	call, err := a.call(t, advisor.Handoff(built, question))
	if err != nil {
		return "", err
	}
	call.Tools, call.private = nil, append(prompt.Texts(built), question)
	o := a.askTwice(ctx, t, call, messages, shownByTool{show: show})
	a.advice.usage, a.advice.warnings = o.step.Usage, o.step.Warnings
	switch {
	case o.kind == v1alpha1.OutcomeInterrupted:
		return "", interruptedAdvice()
	case o.err != nil:
		return "", o.err
	}
	said := onlyText(o.step)
	if len(said.Parts) == 0 {
		return "", silentAdvisor(t, said.FinishReason)
	}
	if said.FinishReason == string(fantasy.FinishReasonLength) {
		return *said.Parts[0].Text + cutAdvice, nil
	}
	return *said.Parts[0].Text, nil
}

const (
	// adviceRetry is how long an advisor whose error may pass is left alone before it is asked once more.
	adviceRetry = time.Second
	// maxAdviceRetry is the longest wait that its provider may ask for: the model waits meanwhile, and can ask again itself.
	maxAdviceRetry = 10 * time.Second
)

// askTwice asks the advisor, once more if its first error may pass. One that was silent has had its time.
func (a *attempt) askTwice(ctx context.Context, t *target, call request, messages []v1alpha1.ChatMessage, to Episode) outcome {
	o := a.ask(ctx, t, call, messages, v1alpha1.RoleTool, to)
	if o.err == nil || !o.err.Retryable || o.err.Reason == v1alpha1.ErrorProviderSilent || o.err.RetryAfter() > maxAdviceRetry {
		return o
	}
	select {
	case <-ctx.Done():
		return outcome{kind: v1alpha1.OutcomeInterrupted}
	case <-time.After(max(adviceRetry, o.err.RetryAfter())):
	}
	return a.ask(ctx, t, call, messages, v1alpha1.RoleTool, to)
}

// shownByTool is the episode of an advice: its text is what the tool shows while it runs.
type shownByTool struct {
	unheard
	show func(string)
}

// Publish shows a piece of the advice.
func (s shownByTool) Publish(_ string, p parts.Part) {
	if p.Type == parts.Text {
		s.show(p.Text)
	}
}

// advisorTarget is the model that gives advice, with settings for that: the bound on its length, and nothing that its
// provider stores.
func (a *attempt) advisorTarget(ctx context.Context) (*target, *v1alpha1.GenerationError) {
	spec, name := a.chat.Spec.Advisor, a.chat.Status.Generation.ModelConfig
	if spec.ModelConfigRef != nil {
		name = spec.ModelConfigRef.Name
	}
	t, err := a.Runner.target(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := a.overBudget(t.config); err != nil {
		return nil, err
	}
	bounded := *t
	bounded.config = t.config.DeepCopy()
	bounded.config.Spec.MaxOutputTokens = new(min(spec.MaxOutputTokensOrDefault(), t.config.Spec.MaxOutputTokensOrDefault()))
	bounded.config.Spec.ProviderOptions = withoutStore(bounded.config.Spec.ProviderOptions)
	return &bounded, nil
}

// overBudget is why the chat's budget does not let the model be asked: it is used up, or could not be kept.
func (a *attempt) overBudget(config *v1alpha1.ChatModelConfig) *v1alpha1.GenerationError {
	if a.chat.Spec.Limits == nil || a.chat.Spec.Limits.Budget == nil {
		return nil
	}
	budget := a.chat.Spec.Limits.Budget
	switch {
	case cost.UsedUp(budget, a.chat.Status.Cost):
		return &v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorBudgetExceeded, Message: fmt.Sprintf("The chat's budget of %s %s is used up", budget.Amount, budget.Currency),
			Advice: "Raise spec.limits.budget",
		}
	case !a.keepsBudget(config.Spec.Pricing):
		return &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorModelConfigInvalid,
			Message: fmt.Sprintf("The chat has a budget in %s, but ChatModelConfig %s has no prices in it", budget.Currency, config.Name),
			Advice:  "Set spec.pricing there, or change spec.limits.budget of the chat",
		}
	}
	return nil
}

// withoutStore is the provider's options without the one that keeps replies at the provider, also among the fields that go into
// the request as they are: nothing refers to an advice.
func withoutStore(options *runtime.RawExtension) *runtime.RawExtension {
	if options == nil {
		return nil
	}
	raw, err := without(options.Raw, "store")
	if err != nil {
		return options // Options that cannot be read make no call.
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil && members["extra_body"] != nil {
		if members["extra_body"], err = without(members["extra_body"], "store"); err == nil {
			if raw, err = json.Marshal(members); err != nil {
				return options
			}
		}
	}
	return &runtime.RawExtension{Raw: raw}
}

// without is a JSON object without that member.
func without(object []byte, name string) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	delete(members, name)
	return json.Marshal(members)
}

// seen is the prompt that the model had when it asked: all before the reply with its call.
func (a *attempt) seen(ctx context.Context, t *target, messages []v1alpha1.ChatMessage) ([]fantasy.Message, *v1alpha1.GenerationError) {
	before := max(0, len(messages)-1)
	for before > 0 && messages[before].Spec.Role != v1alpha1.RoleAssistant {
		before--
	}
	built, ended := a.prompt(ctx, t, compaction.View(messages[:before]))
	switch {
	case ended == nil:
		return built, nil
	case ended.err == nil:
		return nil, interruptedAdvice()
	}
	return nil, ended.err
}

func interruptedAdvice() *v1alpha1.GenerationError {
	return &v1alpha1.GenerationError{Reason: v1alpha1.ErrorCanceled, Message: "The chat was interrupted"}
}

// silentAdvisor is the error of an advisor that wrote no text.
func silentAdvisor(t *target, finish string) *v1alpha1.GenerationError {
	e := &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorProviderError, Provider: string(t.config.Spec.Provider), Message: t.config.Spec.Model + " wrote nothing",
	}
	if finish == string(fantasy.FinishReasonLength) {
		e.Message += " within its limit of tokens"
		e.Advice = "Raise spec.advisor.maxOutputTokens of the chat"
	}
	return e
}

// accountAdvice says in the account of a step what asking the advisor has used up.
func (a *attempt) accountAdvice(g *v1alpha1.MessageGeneration) {
	if a.advice.target == nil {
		return
	}
	g.Advice = a.advice.given
	g.AdvisorModel, g.Warnings = a.advice.target.identity(), a.advice.warnings
	if a.advice.usage != (v1alpha1.TokenUsage{}) {
		g.AdvisorUsage = &a.advice.usage
	}
	g.Cost = cost.Of(a.advice.target.config.Spec.Pricing, a.advice.usage)
}
