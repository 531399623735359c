// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/generation/captions/wording"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/netguard/httpguard"
)

// wanted is a caption that a model is to write.
type wanted struct {
	form   wording.Form
	action v1alpha1.GenerationAction
	// by names the ChatModelConfig that writes it; nil: the one that answers.
	by *v1alpha1.ModelConfigReference
	// shown is what the model is shown, and preamble what it is told before anything else.
	shown, preamble string
	// spent is what the chat has cost when it is written.
	spent []v1alpha1.Cost
}

// write asks a model for a caption; empty if nothing comes of it, which is no fault. The account is nil if the provider
// told no usage.
func (a *Attempt) write(ctx context.Context, t *models.Target, w wanted) (text string, account *v1alpha1.CallAccount) {
	log := a.log.With(slog.String("action", string(w.action)))
	w.preamble = a.preamble
	var failure *v1alpha1.GenerationError
	defer func() {
		if fault := recover(); fault != nil {
			// The fault itself can quote content.
			log.ErrorContext(ctx, "writing a caption failed unexpectedly", slog.String("fault", fmt.Sprintf("%T", fault)))
		}
	}()
	if t, failure = a.target(ctx, t, w); failure == nil {
		text, account, failure = a.ask(ctx, t, w)
	}
	if failure != nil {
		log.DebugContext(ctx, "no caption was written", slog.String("reason", string(failure.Reason)))
	}
	return text, account
}

// target is the model that writes captions.
func (a *Attempt) target(
	ctx context.Context, t *models.Target, w wanted,
) (*models.Target, *v1alpha1.GenerationError) {
	if w.by != nil && w.by.Name != t.Config.Name {
		var missing *v1alpha1.GenerationError
		if t, missing = a.writer.options.Models.Target(ctx, w.by.Name); missing != nil {
			return nil, missing
		}
	}
	return t, t.OverBudget(a.chat, w.spent)
}

// ask asks for the caption, without a tool if the model may have refused that.
func (a *Attempt) ask(
	ctx context.Context, t *models.Target, w wanted,
) (string, *v1alpha1.CallAccount, *v1alpha1.GenerationError) {
	if wait := t.MayCall(ctx); wait != nil {
		return "", nil, wait
	}
	ctx, notes := httpguard.WithNotes(ctx, a.writer.options.Now)
	caller, about := a.writer.options.Observer.SideCaller(a.chat, w.action, a.author), t.Subject()
	about.HTTP = notes
	call := func(plain bool) *observe.ModelCall {
		c := &observe.ModelCall{
			Target: t, Request: w.request(t, plain), Reply: collect.NewAccumulator(t.Config.Spec.Provider, 0, nil),
			Classify: func(err error) *v1alpha1.GenerationError { return fault.Classify(err, about) },
		}
		caller.Call(ctx, c)
		return c
	}
	made := call(false)
	if refusesTools(made.Err) {
		made = call(true)
	}
	_, saysNothing := errors.AsType[*finish.Error](made.Err) // That is no fault, and it is paid for.
	if made.Err != nil && !saysNothing {
		t.NoteFailure(made.Failure)
		return "", nil, made.Failure
	}
	var account *v1alpha1.CallAccount
	if usage := made.Content.Usage; usage != (v1alpha1.TokenUsage{}) {
		account = &v1alpha1.CallAccount{Model: t.Identity(), Usage: usage, Cost: cost.Of(t.Config.Spec.Pricing, usage)}
	}
	if saysNothing {
		return "", account, nil
	}
	return w.form.Read(made.Content.Parts), account, nil
}

// request is what the model is asked. A caption needs no thinking; a plain call leaves that to the configuration,
// unless the model can always be told.
func (w *wanted) request(t *models.Target, plain bool) fantasy.Call {
	effort := t.Config.Spec.ReasoningEffort.Effort("")
	if provider.IsThinkingOptIn(t.Config.Spec.Provider) || effort != "" && !plain {
		effort = v1alpha1.EffortNone
	}
	return w.form.Ask(provider.Call(&t.Config.Spec, effort), w.preamble, w.shown, plain)
}

// refusesTools reports whether the call may have failed for the tool that it demands: servers that know none answer as
// they like.
func refusesTools(err error) bool {
	refusal, ok := errors.AsType[*fantasy.ProviderError](err)
	if !ok {
		return false
	}
	switch refusal.StatusCode {
	case 400, 422, 500, 501:
		return true
	}
	return false
}
