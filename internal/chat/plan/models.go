// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/budget"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/chat/modelconfig"
)

// markAdvisor says whether the advisor can be asked. It keeps no turn from going on: the model continues without it.
// An archived chat asks none.
func markAdvisor(p *pass) {
	why := p.facts.NoAdvice
	if p.status().Archived {
		why = nil
	}
	conditions.MarkAdvisor(p.status(), why, p.facts.Now)
}

// answeringModel is what answers the turn under way, or else why nothing does.
// What is done beside a turn, the chat's model does.
func answeringModel(p *pass) (*Model, *v1beta1.GenerationError) {
	t := p.status().Turn
	if t == nil || t.Result != "" {
		return p.facts.Model, p.facts.Blocked
	}
	return modelNamed(p, Message{Name: t.Message, ModelConfig: t.ModelConfig})
}

// modelNamed is what answers the message, or else why nothing does.
func modelNamed(p *pass, message Message) (*Model, *v1beta1.GenerationError) {
	switch {
	case message.ModelConfig == "" || isBlockedElsewhere(p):
		return p.facts.Model, p.facts.Blocked
	case refusedReference(p, message) != nil:
		return nil, refusedReference(p, message)
	case unavailableModel(p, message) == nil:
		return p.facts.Named[message.ModelConfig], nil
	case p.chat.Spec.WhenModelConfigUnavailable == v1beta1.ModelConfigUnavailableUseDefault && p.facts.Model != nil:
		return p.facts.Model, nil
	}
	return nil, unavailableModel(p, message)
}

// refusedReference is why the class of the chat does not let the ChatModelConfig answer that the message names; nil
// if it does.
func refusedReference(p *pass, message Message) *v1beta1.GenerationError {
	return chatclass.ModelRefused(p.facts.Class.Of(), message.ModelConfig, message.Name)
}

// unavailableModel is why the ChatModelConfig that the message names cannot be used; nil if it can, or if it names
// none.
func unavailableModel(p *pass, message Message) *v1beta1.GenerationError {
	if message.ModelConfig == "" {
		return nil
	}
	named, known := p.facts.Named[message.ModelConfig]
	if !known {
		askModels(p, message.ModelConfig)
	}
	switch by := modelconfig.ByChat + " of ChatMessage " + message.Name; {
	case named == nil:
		return modelconfig.NotFound(message.ModelConfig, by)
	case named.Disabled:
		return modelconfig.Disabled(message.ModelConfig, by)
	}
	return nil
}

// askModels asks for the ChatModelConfig of that name, and for all that waiting messages name: one of them after the
// other would be asked for if each turn failed at once.
func askModels(p *pass, name string) {
	names := []string{name}
	for _, messages := range [][]Message{p.facts.Open, p.facts.Queued} {
		for i := range messages {
			names = append(names, messages[i].ModelConfig)
		}
	}
	for _, name := range names {
		if _, known := p.facts.Named[name]; !known && name != "" && !slices.Contains(p.plan.Asks.Models, name) {
			p.plan.Asks.Models = append(p.plan.Asks.Models, name)
		}
	}
}

// markFallback says whether another ChatModelConfig answers than the one that is named, for the turn under way or else
// for the chat. A chat that is archived is answered by none.
func markFallback(p *pass) {
	why := p.facts.FellBack
	if t := p.status().Turn; t != nil && t.Result == "" && t.ModelConfig != "" {
		why = unavailableModel(p, Message{Name: t.Message, ModelConfig: t.ModelConfig})
	}
	if p.status().Archived || p.facts.Model == nil ||
		p.chat.Spec.WhenModelConfigUnavailable != v1beta1.ModelConfigUnavailableUseDefault {
		why = nil
	}
	answers := ""
	if p.facts.Model != nil {
		answers = p.facts.Model.Config
	}
	conditions.MarkFallback(p.status(), why, answers, p.facts.Now)
}

// ofTheModel are the reasons that say something of the ChatModelConfig that the chat names, and nothing of another one.
var ofTheModel = []v1beta1.ErrorReason{
	v1beta1.ErrorModelConfigNotFound, v1beta1.ErrorModelConfigDisabled, v1beta1.ErrorModelConfigNotAllowed,
}

// isBlockedElsewhere reports whether something other than its ChatModelConfig keeps the chat from working.
func isBlockedElsewhere(p *pass) bool {
	return p.facts.Blocked != nil && !slices.Contains(ofTheModel, p.facts.Blocked.Reason)
}

// classMissing reports whether the class of the chat does not exist: it is not known what the chat may do.
func classMissing(p *pass) bool {
	return p.facts.Blocked != nil && p.facts.Blocked.Reason == v1beta1.ErrorChatClassNotFound
}

// missingReferences are the reasons of what does not exist and may yet be created.
var missingReferences = []v1beta1.ErrorReason{v1beta1.ErrorChatClassNotFound, v1beta1.ErrorModelConfigNotFound}

// missingReference is why the next action has no class or no model, if that is because one does not exist; otherwise
// nil.
func missingReference(p *pass) *v1beta1.GenerationError {
	_, why := answeringModel(p)
	if why == nil || !slices.Contains(missingReferences, why.Reason) {
		return nil
	}
	return why
}

// awaitsReference reports whether the turn waits for a class or a model that does not exist. It does so until the time
// that the status names, which is set when the wait begins; a chat that is to be archived does not wait. One that is
// suspended waits to be resumed first.
func awaitsReference(p *pass) bool {
	missing, wait := missingReference(p), p.status().Wait
	switch {
	case missing == nil:
		return false
	case p.facts.Suspended:
		return true
	case p.facts.Archive:
		return false
	}
	return wait == nil || wait.Reason != string(missing.Reason) || wait.Until == nil || p.facts.Now.Before(wait.Until.Time)
}

// blockedBy is why the message cannot be answered; nil if it can.
func blockedBy(p *pass, message Message) *v1beta1.GenerationError {
	_, why := modelNamed(p, message)
	return why
}

// effectiveBudgets are those that the chat must keep.
func effectiveBudgets(p *pass) []v1beta1.EffectiveBudget {
	var own *v1beta1.Budget
	if limits := p.chat.Spec.Limits; limits != nil {
		own = limits.Budget
	}
	return budget.Effective(own, cost.Sum(p.status().DeletedCost, p.facts.SubChatCosts.Below()), p.facts.BudgetsAbove)
}

// withPrices are the models whose prices the budgets of the chat need, in their order; all of them if none has such
// prices.
func withPrices(p *pass, models []Alternative) []Alternative {
	all := effectiveBudgets(p)
	unpriced := func(m Alternative) bool {
		return budget.Unpriced(all, budget.Call{Config: m.Config, Currency: m.Currency}) != nil
	}
	if kept := slices.DeleteFunc(slices.Clone(models), unpriced); len(kept) > 0 {
		return kept
	}
	return models
}

// overBudget is why budgets do not let the action call its model; nil if they do, or if it calls none. An attempt that
// waits for something else, such as a class, has no model yet.
func overBudget(p *pass, action v1beta1.GenerationAction) *v1beta1.GenerationError {
	all := effectiveBudgets(p)
	if model, _ := answeringModel(p); len(all) == 0 || model == nil || action == v1beta1.ActionExecuteTools {
		return nil
	}
	next := nextModel(p, action)
	return budget.Refuse(all, p.status().Cost, budget.Call{Config: next.Config, Currency: next.Currency})
}
