// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/prompt/compaction"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/tools"
)

// advice is the account of the advisor.
type advice struct {
	target   *models.Target
	usage    v1beta1.TokenUsage
	warnings []string
	count    int32
}

// account adds the advice to the account of a step.
func (a *advice) account(g *v1beta1.MessageGeneration) {
	if a.target == nil {
		return
	}
	g.Advice = a.count
	g.AdvisorModel, g.Warnings = a.target.Identity(), a.warnings
	if a.usage != (v1beta1.TokenUsage{}) {
		g.AdvisorUsage = &a.usage
	}
	g.Cost = cost.Of(a.target.Config.Spec.Pricing, a.usage)
}

// consultation answers the calls of the advisor that a step runs.
type consultation struct {
	performer *Performer
	messages  []v1beta1.ChatMessage
}

// answer is an advisor.Consult. The chat has an advisor, or the call would not run.
func (c *consultation) answer(ctx context.Context, call tools.Call) advisor.Result {
	spec, advice := c.performer.chat.Spec.Advisor, &c.performer.advice
	most := spec.MaxUsesOrDefault()
	used := advisor.Used(c.messages)
	if turn := c.performer.chat.Status.Turn; turn != nil { // A summary may stand for some of the messages.
		used = max(used, turn.Advice)
	}
	remaining := max(0, most-used)
	if remaining == 0 {
		return advisor.Result{
			Type:  advisor.TypeLimitReached,
			Error: fmt.Sprintf("the advisor can be asked %d times in a turn, and has been: go on without", most),
		}
	}
	question, err := advisor.Question(call.Input)
	if err != nil {
		return advisor.Result{Type: advisor.TypeError, Error: err.Error(), RemainingUses: remaining}
	}
	text, failure := c.advise(ctx, question, call.Show)
	result := advisor.Result{Type: advisor.TypeAdvice, Advice: text, RemainingUses: remaining - 1}
	if failure != nil {
		result = advisor.Result{Type: advisor.TypeError, Error: errorForModel(failure), RemainingUses: remaining}
	} else {
		advice.count++
	}
	if advice.target != nil {
		result.Model = advice.target.Config.Spec.Model
	}
	return result
}

// errorForModel words the error for the model, which cannot follow advice for people.
func errorForModel(e *v1beta1.GenerationError) string {
	goOn := "Go on without its advice"
	if e.Retryable {
		goOn += ", or ask again later"
	}
	return fmt.Sprintf("The advisor gave no advice (%s). %s. For the people of this chat: %s", e.Reason, goOn, e.Text())
}

// cutAdvice marks an incomplete advice.
const cutAdvice = "\n\n[The advice ends here: it reached its limit of tokens.]"

// advise asks the advisor, without tools, and shows its advice.
func (c *consultation) advise(
	ctx context.Context, question string, show func(string),
) (string, *v1beta1.GenerationError) {
	advice := &c.performer.advice
	t, err := c.target(ctx)
	if err != nil {
		return "", err
	}
	built, release, err := c.prompt(ctx, t)
	if err != nil {
		return "", err
	}
	advice.target = t
	r := c.performer.request(t, advisor.Handoff(built, question))
	r.call.Tools, r.private = nil, append(prompt.Texts(built), question)
	release() // The advisor gets no files.
	o := c.askTwice(ctx, r, show)
	advice.usage, advice.warnings = o.Content.Usage, o.Content.Warnings
	switch {
	case o.Kind == v1beta1.OutcomeInterrupted:
		return "", interruptedAdvice()
	case o.Err != nil:
		return "", o.Err
	}
	text := strings.TrimSpace(textOf(o.Content.Parts))
	switch isCut := o.Content.ReplyOutcome == v1beta1.ReplyMaxTokensReached; {
	case text == "":
		return "", emptyAdvice(t, isCut)
	case isCut:
		text += cutAdvice
	}
	return text, nil
}

const (
	// adviceRetry is the shortest pause before the advisor is asked a second time.
	adviceRetry = time.Second
	// maxAdviceRetry is the longest pause that its provider may ask for: the model waits, and can ask again itself.
	maxAdviceRetry = 10 * time.Second
)

// askTwice asks the advisor a second time after a temporary error, except after silence, which has taken its time.
func (c *consultation) askTwice(ctx context.Context, r request, show func(string)) Outcome {
	showText := func(p parts.Part) {
		if p.Type == parts.Text {
			show(p.Text)
		}
	}
	o := c.performer.ask(ctx, r, c.messages, showText)
	again := o.Err != nil && o.Err.Retryable && o.Err.Reason != v1beta1.ErrorProviderTimeout
	if !again || o.Err.RetryAfter() > maxAdviceRetry {
		return o
	}
	if retry.Sleep(ctx, max(adviceRetry, o.Err.RetryAfter())) != nil {
		return Outcome{Kind: v1beta1.OutcomeInterrupted}
	}
	second := c.performer.ask(ctx, r, c.messages, showText)
	second.Content.Usage = second.Content.Usage.Add(o.Content.Usage)
	return second
}

// prompt is the prompt that the model had when it asked, followed by the text of the reply with its call. Call release
// when it is no longer needed.
func (c *consultation) prompt(ctx context.Context, t *models.Target) (built []fantasy.Message, release func(),
	failure *v1beta1.GenerationError) {
	before := max(0, len(c.messages)-1)
	for before > 0 && c.messages[before].Spec.Role != v1beta1.RoleAssistant {
		before--
	}
	built, release, ended := c.performer.prompt(ctx, t, compaction.View(c.messages[:before]))
	switch {
	case ended != nil && ended.Err == nil:
		return nil, nil, interruptedAdvice()
	case ended != nil:
		return nil, nil, ended.Err
	}
	if before < len(c.messages) {
		if text := textOf(c.messages[before].Spec.Parts); strings.TrimSpace(text) != "" {
			built = append(built, fantasy.Message{Role: fantasy.MessageRoleAssistant,
				Content: []fantasy.MessagePart{fantasy.TextPart{Text: text}}})
		}
	}
	return built, release, nil
}

func interruptedAdvice() *v1beta1.GenerationError {
	return &v1beta1.GenerationError{Reason: v1beta1.ErrorCanceled, Message: "The chat was interrupted"}
}

// emptyAdvice is the error of an advisor that wrote no text.
func emptyAdvice(t *models.Target, isCut bool) *v1beta1.GenerationError {
	e := &v1beta1.GenerationError{
		Reason: v1beta1.ErrorProviderError, Provider: string(t.Config.Spec.Provider),
		Message: t.Config.Spec.Model + " wrote nothing",
	}
	if isCut {
		e.Message += " within its limit of tokens"
		e.Advice = "Raise spec.advisor.maxOutputTokens of the chat"
	}
	return e
}

// Settle is the chat with the settings in force: within its mode, and without an unavailable advisor, which no model is
// offered. A call of it that has been made is answered with the reason.
func (s *Steps) Settle(chat *v1beta1.Chat) *v1beta1.Chat {
	if meta.IsStatusConditionTrue(chat.Status.Conditions, v1beta1.ConditionAdvisorUnavailable) &&
		chat.Status.Generation.Action != v1beta1.ActionExecuteTools {
		chat = new(*chat)
		chat.Spec.Advisor = nil
	}
	return s.options.Tools.InMode(chat)
}

// target is the model of the advisor, with its limit of tokens, and without storage at its provider.
func (c *consultation) target(ctx context.Context) (*models.Target, *v1beta1.GenerationError) {
	chat := c.performer.chat
	spec, name := chat.Spec.Advisor, chat.Status.Generation.ModelConfig
	if spec.ModelConfigRef != nil {
		name = spec.ModelConfigRef.Name
	}
	t, err := c.performer.steps.options.Models.Target(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := t.OverBudget(chat, chat.Status.Cost); err != nil {
		return nil, err
	}
	bounded := *t
	bounded.Config = t.Config.DeepCopy()
	most := min(spec.MaxOutputTokensOrDefault(), t.Config.Spec.MaxOutputTokensOrDefault())
	bounded.Config.Spec.MaxOutputTokens = &most
	bounded.Config.Spec.ProviderOptions = withoutStore(bounded.Config.Spec.ProviderOptions)
	return &bounded, nil
}

// withoutStore removes the option that keeps replies at the provider, also from the fields that go into the request
// unchanged: nothing refers to an advice.
func withoutStore(options *v1beta1.ProviderOptions) *v1beta1.ProviderOptions {
	if options == nil {
		return nil
	}
	var providers map[string]map[string]json.RawMessage
	convert(options, &providers)
	for _, fields := range providers {
		delete(fields, "store")
		var body map[string]json.RawMessage
		if json.Unmarshal(fields["extraBody"], &body) == nil && body["store"] != nil {
			delete(body, "store")
			fields["extraBody"], _ = json.Marshal(body)
		}
	}
	without := &v1beta1.ProviderOptions{}
	convert(providers, without)
	return without
}

// convert converts by way of JSON, which the types of the API always have.
func convert(from, to any) {
	raw, _ := json.Marshal(from)
	_ = json.Unmarshal(raw, to)
}
