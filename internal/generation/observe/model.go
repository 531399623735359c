// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"time"

	"charm.land/fantasy"
	"go.opentelemetry.io/otel/attribute"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/debug"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// purpose is what calls are made for.
type purpose struct {
	chatUID string
	// action that the calls are made for beside the attempt; empty for the attempt's own.
	action v1alpha1.GenerationAction
	// interrupted reports whether the attempt was interrupted; nil for calls that this does not stop.
	interrupted func() bool
}

// model records and measures the calls of a model.
type model struct {
	fantasy.LanguageModel
	observer *Observer
	target   *models.Target
	purpose  purpose
}

func (o *Observer) model(t *models.Target, recording *debug.Recording, why purpose) fantasy.LanguageModel {
	recorded := recording.Model(t.Model, debug.Subject{
		Config: t.Config, Key: t.Key,
		Classify: func(err error) *v1alpha1.GenerationError { return fault.Classify(err, t.Subject()) },
	})
	return &model{LanguageModel: recorded, observer: o, target: t, purpose: why}
}

// Stream implements fantasy.LanguageModel.
func (m *model) Stream(ctx context.Context, request fantasy.Call) (fantasy.StreamResponse, error) {
	ctx, c := m.begin(ctx, &request)
	stream, err := m.LanguageModel.Stream(ctx, request)
	if err != nil {
		c.end(ctx, err)
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		var err error
		defer func() { c.end(ctx, err) }()
		err = c.forward(stream, yield)
	}, nil
}

// begin begins to measure a call, which is to be made in the returned context.
func (m *model) begin(ctx context.Context, request *fantasy.Call) (context.Context, *call) {
	o := &m.observer.options
	c := &call{model: m, began: o.Now()}
	ctx, c.span = o.Tracer.StartModelCall(ctx, m.target.Config.Spec.Model, func() []attribute.KeyValue {
		return m.attributes(request)
	})
	if c.capturesContent() {
		c.said = &saidSoFar{}
	}
	return ctx, c
}

// call measures one call of a model. It belongs to the goroutine that reads the stream.
type call struct {
	model *model
	span  tracing.Span
	began time.Time
	first time.Duration
	usage fantasy.Usage
	last  finish.Last
	// said is what the model says, nil unless spans hold content.
	said *saidSoFar
}

// capturesContent reports whether the span is to hold what the model says.
func (c *call) capturesContent() bool {
	return c.model.observer.options.Tracer.Content() && c.span.Recording()
}

// forward yields the parts of the stream. The error is how the stream failed, if it did; what is not wanted any more
// did not.
func (c *call) forward(stream fantasy.StreamResponse, yield func(fantasy.StreamPart) bool) error {
	finished := false
	for part := range stream {
		switch part.Type {
		case fantasy.StreamPartTypeError:
			c.usage = part.Usage // A reply that answers nothing is paid for.
			yield(part)
			return part.Error
		case fantasy.StreamPartTypeFinish:
			finished = true
		}
		c.measure(&part)
		if !yield(part) {
			return nil
		}
	}
	if !finished {
		return fantasy.NewIncompleteStreamError()
	}
	return nil
}

// measure looks at the first part and the last alone.
func (c *call) measure(p *fantasy.StreamPart) {
	if c.first == 0 && p.Type != fantasy.StreamPartTypeWarnings {
		o := &c.model.observer.options
		c.first = max(o.Now().Sub(c.began), 1)
		o.Metrics.FirstPart(c.provider(), c.first)
	}
	if p.Type == fantasy.StreamPartTypeFinish {
		c.usage, c.last = p.Usage, finish.LastOf(p)
	}
	if c.said != nil {
		c.said.add(p)
	}
}

func (c *call) provider() string { return string(c.model.target.Config.Spec.Provider) }

// end ends the call, which was made in ctx.
func (c *call) end(ctx context.Context, err error) {
	o := &c.model.observer.options
	outcome, reason := c.outcome(ctx, err)
	o.Metrics.CallEnded(c.provider(), outcome, string(c.reply(err)), o.Now().Sub(c.began))
	u := collect.UsageOf(c.model.target.Config.Spec.Provider, c.usage)
	for kind, n := range map[string]int64{
		telemetry.TokensInput: u.InputTokens, telemetry.TokensOutput: u.OutputTokens,
		telemetry.TokensReasoning: u.ReasoningTokens,
		telemetry.TokensCacheRead: u.CacheReadTokens, telemetry.TokensCacheWrite: u.CacheWriteTokens,
	} {
		o.Metrics.Tokens(c.provider(), kind, n)
	}
	if c.span.Recording() {
		c.span.Set(c.ending(outcome, u)...)
	}
	c.span.End(reason)
}

// reply is how the reply ended; empty if there was none.
func (c *call) reply(err error) v1alpha1.ReplyOutcome {
	if failed, ok := errors.AsType[*finish.Error](err); ok {
		return failed.Outcome
	}
	return c.last.Outcome
}

// outcome is how the call ended, and why if it failed.
func (c *call) outcome(ctx context.Context, err error) (outcome, reason string) {
	interrupted := c.model.purpose.interrupted
	switch cause := context.Cause(ctx); {
	case err == nil:
		return string(v1alpha1.OutcomeCompleted), ""
	case interrupted != nil && interrupted():
		return string(v1alpha1.OutcomeInterrupted), ""
	case errors.Is(cause, models.ErrSilent):
		return string(v1alpha1.OutcomeFailed), string(v1alpha1.ErrorProviderSilent)
	case errors.Is(cause, context.DeadlineExceeded): // Of a call beside the attempt, which nothing waits for.
		return string(v1alpha1.OutcomeFailed), string(v1alpha1.ErrorProviderUnavailable)
	case cause != nil:
		return telemetry.OutcomeAbandoned, ""
	}
	return string(v1alpha1.OutcomeFailed), string(fault.Classify(err, c.model.target.Subject()).Reason)
}
