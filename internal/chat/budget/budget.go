// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget decides whether a model may be called under the budgets that count what the call costs. It is the one
// check for all calls: replies, summaries, advice and captions, in the operator and in generation pods. It is pure.
package budget

import (
	"fmt"
	"math"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/chat/tree"
)

// Effective lists the budgets that the chat must keep: its own first, which counts what the chats below have cost, and
// then those of the chats above, nearest first.
func Effective(own *v1beta1.Budget, below []v1beta1.Cost, above []tree.BudgetAbove) (all []v1beta1.EffectiveBudget) {
	if own != nil {
		all = append(all, of("", own, below))
	}
	for _, b := range above {
		all = append(all, of(b.Chat, b.Budget, b.Others))
	}
	return all
}

func of(chat string, b *v1beta1.Budget, others []v1beta1.Cost) v1beta1.EffectiveBudget {
	return v1beta1.EffectiveBudget{Chat: chat, Budget: *b, OthersMicroUnits: cost.Spent(others, b.Currency)}
}

// Call is a call of a model.
type Call struct {
	// Config is the name of the ChatModelConfig.
	Config string
	// Currency of its prices; empty if it has none.
	Currency v1beta1.Currency
}

// CallOf is a call of the model of the configuration.
func CallOf(config *v1beta1.ChatModelConfig) Call {
	call := Call{Config: config.Name}
	if config.Spec.Pricing != nil {
		call.Currency = config.Spec.Pricing.Currency
	}
	return call
}

// Refuse is why the call must not be made by a chat that has cost so much itself: a budget is reached, or the model has
// no prices in its currency. nil: it may be made.
func Refuse(all []v1beta1.EffectiveBudget, own []v1beta1.Cost, call Call) *v1beta1.GenerationError {
	for i := range all {
		if err := reached(&all[i], own); err != nil {
			return err
		}
	}
	return Unpriced(all, call)
}

// Unpriced is why a budget could not be kept: the model has no prices in its currency. nil: all could.
func Unpriced(all []v1beta1.EffectiveBudget, call Call) *v1beta1.GenerationError {
	for i := range all {
		if err := unpriced(&all[i], call); err != nil {
			return err
		}
	}
	return nil
}

func reached(b *v1beta1.EffectiveBudget, own []v1beta1.Cost) *v1beta1.GenerationError {
	mine := cost.Spent(own, b.Currency)
	spent := mine + min(b.OthersMicroUnits, math.MaxInt64-mine)
	if allowed, ok := cost.Micros(b.Amount); ok && spent < allowed {
		return nil
	}
	who, has, where := "The chat", " has", "the chat"
	if b.Chat != "" {
		who, where = "Chat "+b.Chat, "chat "+b.Chat
	}
	if b.Chat != "" || b.OthersMicroUnits > 0 {
		has = " and its sub-chats have"
	}
	return &v1beta1.GenerationError{
		Reason: v1beta1.ErrorBudgetReached,
		Message: fmt.Sprintf("%s%s cost %s, and its budget is %s %s", who, has, cost.String(spent, b.Currency), b.Amount,
			b.Currency),
		Advice: fmt.Sprintf("Raise spec.limits.budget of %s, and the turn continues", where),
	}
}

func unpriced(b *v1beta1.EffectiveBudget, call Call) *v1beta1.GenerationError {
	if call.Currency == b.Currency {
		return nil
	}
	who := "The chat"
	if b.Chat != "" {
		who = "Chat " + b.Chat
	}
	return &v1beta1.GenerationError{
		Reason: v1beta1.ErrorModelPriceMissing,
		Message: fmt.Sprintf("%s has a budget in %s, but ChatModelConfig %s has no prices in it", who, b.Currency,
			call.Config),
		Advice: "Set spec.pricing there, or change the budget",
	}
}
