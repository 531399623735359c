// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cost"
	"parley.dev/parley/internal/generation/caption"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/transport"
	"parley.dev/parley/internal/generation/step"
)

// captionTimeout bounds what is asked for beside a reply. Nothing waits for it.
const captionTimeout = 30 * time.Second

// wanted is a caption that a model is to write.
type wanted struct {
	form   caption.Form
	action v1alpha1.GenerationAction
	// by names the ChatModelConfig that writes it; nil: the one that answers.
	by *v1alpha1.ModelConfigReference
	// shown is what the model is shown.
	shown string
}

// writeCaption asks a model for a caption; empty if nothing comes of it, which is no fault. The account is nil if the provider told
// no usage.
func (a *attempt) writeCaption(ctx context.Context, t *target, w wanted) (text string, account *v1alpha1.CallAccount) {
	ctx, recording := a.recorder.Begin(ctx, a.chat, w.action)
	recording.By(a.recording.CreatedBy())
	log := a.Log.With(a.about(), slog.String("action", string(w.action)))
	var failure *v1alpha1.GenerationError
	defer func() {
		if fault := recover(); fault != nil {
			// The fault itself can quote content.
			log.ErrorContext(ctx, "writing a caption failed unexpectedly", slog.String("fault", fmt.Sprintf("%T", fault)))
			failure = &v1alpha1.GenerationError{Reason: v1alpha1.ErrorInternal}
		}
		recording.End(captionEnded(ctx, failure), failure)
	}()
	if t, failure = a.captionTarget(ctx, t, w.by); failure == nil {
		text, account, failure = a.askCaption(ctx, t, w)
	}
	if failure != nil {
		log.DebugContext(ctx, "no caption was written", slog.String("reason", string(failure.Reason)))
	}
	return text, account
}

func captionEnded(ctx context.Context, failure *v1alpha1.GenerationError) v1alpha1.DebugStatus {
	switch {
	case failure == nil:
		return v1alpha1.DebugCompleted
	case errors.Is(ctx.Err(), context.Canceled):
		return v1alpha1.DebugInterrupted
	}
	return v1alpha1.DebugError
}

// captionTarget is the model that writes captions. It may cost nothing that the chat's budget could not count.
func (a *attempt) captionTarget(ctx context.Context, t *target, by *v1alpha1.ModelConfigReference) (*target, *v1alpha1.GenerationError) {
	if by != nil && by.Name != t.config.Name {
		var missing *v1alpha1.GenerationError
		if t, missing = a.Runner.target(ctx, by.Name); missing != nil {
			return nil, missing
		}
	}
	return t, a.overBudget(t.config)
}

// askCaption asks for the caption, without a tool if the model may have refused that.
func (a *attempt) askCaption(ctx context.Context, t *target, w wanted) (string, *v1alpha1.CallAccount, *v1alpha1.GenerationError) {
	ctx, notes := transport.WithNotes(ctx)
	answer, err := a.generateCaption(ctx, t, w, false)
	if refusesTools(err) {
		answer, err = a.generateCaption(ctx, t, w, true)
	}
	if err != nil {
		about := t.subject()
		about.HTTP = notes
		return "", nil, fault.Classify(err, about)
	}
	spec := &t.config.Spec
	usage := step.UsageOf(spec.Provider, answer.Usage)
	if usage == (v1alpha1.TokenUsage{}) {
		return w.form.Read(answer), nil, nil
	}
	return w.form.Read(answer), &v1alpha1.CallAccount{Model: t.identity(), Usage: usage, Cost: cost.Of(spec.Pricing, usage)}, nil
}

// generateCaption calls the model. A caption needs no thinking; a plain call leaves that to the configuration, unless the model
// can always be told.
func (a *attempt) generateCaption(ctx context.Context, t *target, w wanted, plain bool) (answer *fantasy.Response, err error) {
	effort := t.config.Spec.ReasoningEffort.Effort("")
	if provider.ThinksOnlyIfTold(t.config.Spec.Provider) || effort != "" && !plain {
		effort = v1alpha1.EffortNone
	}
	settings, _, err := provider.Call(&t.config.Spec, effort)
	if err != nil {
		return nil, err
	}
	call := w.form.Ask(settings, w.shown, plain)
	calling, end := a.observeAnswer(ctx, t, &call, w.action)
	defer func() { end(answer, err) }()
	return t.model.Generate(calling, call)
}

// refusesTools reports whether the call may have failed for the tool that it demands: servers that know none answer as they
// like.
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

// keepsBudget reports whether the chat's budget, if it has one, can count what is spent at these prices.
func (a *attempt) keepsBudget(pricing *v1alpha1.Pricing) bool {
	limits := a.chat.Spec.Limits
	return limits == nil || limits.Budget == nil || pricing != nil && pricing.Currency == limits.Budget.Currency
}
