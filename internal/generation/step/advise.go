// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"strings"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/prompt/compaction"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/tools"
)

// advice is what asking the advisor has used up, which model that was, and what it warned of.
type advice struct {
	target   *models.Target
	usage    v1alpha1.TokenUsage
	warnings []string
	// given is how many pieces of advice came of it.
	given int32
}

// account says in the account of a step what asking the advisor has used up.
func (a *advice) account(g *v1alpha1.MessageGeneration) {
	if a.target == nil {
		return
	}
	g.Advice = a.given
	g.AdvisorModel, g.Warnings = a.target.Identity(), a.warnings
	if a.usage != (v1alpha1.TokenUsage{}) {
		g.AdvisorUsage = &a.usage
	}
	g.Cost = cost.Of(a.target.Config.Spec.Pricing, a.usage)
}

// consultation answers the calls of the advisor that a step runs.
type consultation struct {
	performer *Performer
	messages  []v1alpha1.ChatMessage
}

// answer is an advisor.Consult. The chat has an advisor: otherwise the call would not be run.
func (c *consultation) answer(ctx context.Context, call tools.Call) advisor.Result {
	spec, advice := c.performer.chat.Spec.Advisor, &c.performer.advice
	most := spec.MaxUsesOrDefault()
	remaining := max(0, most-c.soFar())
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
		advice.given++
	}
	if advice.target != nil {
		result.Model = advice.target.Config.Spec.Model
	}
	return result
}

// soFar is how many pieces of advice the turn has had, also such as a summary stands for.
func (c *consultation) soFar() int32 {
	used := advisor.Used(c.messages)
	if turn := c.performer.chat.Status.Turn; turn != nil {
		used = max(used, turn.Advice)
	}
	return used
}

// errorForModel is the error as the model reads it, which cannot do what it asks people to do.
func errorForModel(e *v1alpha1.GenerationError) string {
	goOn := "Go on without its advice"
	if e.Retryable {
		goOn += ", or ask again later"
	}
	return fmt.Sprintf("The advisor gave no advice (%s). %s. For the people of this chat: %s", e.Reason, goOn, e.Text())
}

// cutAdvice marks an advice that is not whole.
const cutAdvice = "\n\n[The advice ends here: it reached its limit of tokens.]"

// advise asks the advisor, without tools, and shows its advice as it comes.
func (c *consultation) advise(
	ctx context.Context, question string, show func(string),
) (string, *v1alpha1.GenerationError) {
	advice := &c.performer.advice
	t, err := c.target(ctx)
	if err != nil {
		return "", err
	}
	built, err := c.seen(ctx, t)
	if err != nil {
		return "", err
	}
	advice.target = t
	r := c.performer.request(t, advisor.Handoff(built, question))
	r.call.Tools, r.private = nil, append(prompt.Texts(built), question)
	o := c.askTwice(ctx, r, show)
	advice.usage, advice.warnings = o.Content.Usage, o.Content.Warnings
	switch {
	case o.Kind == v1alpha1.OutcomeInterrupted:
		return "", interruptedAdvice()
	case o.Err != nil:
		return "", o.Err
	}
	said := onlyText(o.Content)
	if len(said.Parts) == 0 {
		return "", silentAdvisor(t, said.ReplyOutcome)
	}
	if said.ReplyOutcome == v1alpha1.ReplyCutByLength {
		return *said.Parts[0].Text + cutAdvice, nil
	}
	return *said.Parts[0].Text, nil
}

const (
	// adviceRetry is how long an advisor whose error may pass is left alone before it is asked once more.
	adviceRetry = time.Second
	// maxAdviceRetry is the longest wait that its provider may ask for: the model waits meanwhile, and can ask again
	// itself.
	maxAdviceRetry = 10 * time.Second
)

// askTwice asks the advisor, once more if its first error may pass. One that was silent has had its time.
func (c *consultation) askTwice(ctx context.Context, r request, show func(string)) Outcome {
	showText := func(p parts.Part) {
		if p.Type == parts.Text {
			show(p.Text)
		}
	}
	o := c.performer.ask(ctx, r, c.messages, showText)
	again := o.Err != nil && o.Err.Retryable && o.Err.Reason != v1alpha1.ErrorProviderSilent
	if !again || o.Err.RetryAfter() > maxAdviceRetry {
		return o
	}
	if retry.Sleep(ctx, max(adviceRetry, o.Err.RetryAfter())) != nil {
		return Outcome{Kind: v1alpha1.OutcomeInterrupted}
	}
	second := c.performer.ask(ctx, r, c.messages, showText)
	second.Content.Usage = second.Content.Usage.Add(o.Content.Usage)
	return second
}

// seen is the prompt that the model had when it asked, and the text of the reply with its call.
func (c *consultation) seen(ctx context.Context, t *models.Target) ([]fantasy.Message, *v1alpha1.GenerationError) {
	before := max(0, len(c.messages)-1)
	for before > 0 && c.messages[before].Spec.Role != v1alpha1.RoleAssistant {
		before--
	}
	built, ended := c.performer.prompt(ctx, t, compaction.View(c.messages[:before]))
	switch {
	case ended == nil:
		return withText(built, c.messages[before:]), nil
	case ended.Err == nil:
		return nil, interruptedAdvice()
	}
	return nil, ended.Err
}

// withText is the prompt with the text of the reply that follows it, if there is any.
func withText(built []fantasy.Message, after []v1alpha1.ChatMessage) []fantasy.Message {
	if len(after) == 0 || strings.TrimSpace(textOf(after[0].Spec.Parts)) == "" {
		return built
	}
	return append(built, fantasy.Message{Role: fantasy.MessageRoleAssistant,
		Content: []fantasy.MessagePart{fantasy.TextPart{Text: textOf(after[0].Spec.Parts)}}})
}

func interruptedAdvice() *v1alpha1.GenerationError {
	return &v1alpha1.GenerationError{Reason: v1alpha1.ErrorCanceled, Message: "The chat was interrupted"}
}

// silentAdvisor is the error of an advisor that wrote no text.
func silentAdvisor(t *models.Target, outcome v1alpha1.ReplyOutcome) *v1alpha1.GenerationError {
	e := &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorProviderError, Provider: string(t.Config.Spec.Provider),
		Message: t.Config.Spec.Model + " wrote nothing",
	}
	if outcome == v1alpha1.ReplyCutByLength {
		e.Message += " within its limit of tokens"
		e.Advice = "Raise spec.advisor.maxOutputTokens of the chat"
	}
	return e
}
