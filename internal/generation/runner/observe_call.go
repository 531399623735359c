// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"charm.land/fantasy"
	"go.opentelemetry.io/otel/attribute"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// observedCall measures one call of a model. It belongs to the goroutine that reads the stream.
type observedCall struct {
	*attempt
	ctx    context.Context
	target *target
	// beside is true for a call that an interruption of the attempt does not stop.
	beside bool
	span   tracing.Span
	began  time.Time
	first  time.Duration
	usage  fantasy.Usage
	finish fantasy.FinishReason
	// said is what the model says, nil unless spans hold content.
	said *saidSoFar
}

// observeCall measures a call: it is made in the returned context, its parts go through the returned function, and end is
// told how it ended. Of all parts it looks at the first and the last alone.
func (a *attempt) observeCall(
	ctx context.Context, t *target, call *fantasy.Call, each func(*fantasy.StreamPart),
) (calling context.Context, through func(*fantasy.StreamPart), end func(error)) {
	c := &observedCall{attempt: a, target: t, began: a.Now()}
	c.ctx, c.span = a.Tracer.StartModelCall(ctx, t.config.Spec.Model, func() []attribute.KeyValue { return callAttributes(a, t, call, true) })
	if a.Tracer.Content() && c.span.Recording() {
		c.said = &saidSoFar{}
	}
	return c.ctx, func(p *fantasy.StreamPart) {
		c.look(p)
		each(p)
	}, c.end
}

// observeAnswer measures a call beside the attempt whose answer comes as a whole: it has no first part.
func (a *attempt) observeAnswer(
	ctx context.Context, t *target, call *fantasy.Call, action v1alpha1.GenerationAction,
) (calling context.Context, end func(*fantasy.Response, error)) {
	c := &observedCall{attempt: a, target: t, beside: true, began: a.Now()}
	c.ctx, c.span = a.Tracer.StartModelCall(ctx, t.config.Spec.Model, func() []attribute.KeyValue {
		return append(callAttributes(a, t, call, false), attribute.String(telemetry.AttrAction, string(action)))
	})
	return c.ctx, func(answer *fantasy.Response, err error) {
		if err == nil {
			c.usage, c.finish = answer.Usage, answer.FinishReason
			if a.Tracer.Content() && c.span.Recording() {
				c.said = saidIn(answer)
			}
		}
		c.end(err)
	}
}

func (c *observedCall) look(p *fantasy.StreamPart) {
	if c.first == 0 && p.Type != fantasy.StreamPartTypeWarnings {
		c.first = max(c.Now().Sub(c.began), 1)
		c.Metrics.FirstPart(c.provider(), c.first)
	}
	if p.Type == fantasy.StreamPartTypeFinish {
		c.usage, c.finish = p.Usage, p.FinishReason
	}
	if c.said != nil {
		c.said.add(p)
	}
}

func (c *observedCall) provider() string { return string(c.target.config.Spec.Provider) }

func (c *observedCall) end(err error) {
	outcome, reason := c.outcome(err)
	c.Metrics.CallEnded(c.provider(), outcome, c.Now().Sub(c.began))
	u := step.UsageOf(c.target.config.Spec.Provider, c.usage)
	c.countTokens(c.provider(), u)
	if c.span.Recording() {
		c.span.Set(c.ending(outcome, u)...)
	}
	c.span.End(reason)
}

func (r *Runner) countTokens(provider string, u v1alpha1.TokenUsage) {
	for kind, n := range map[string]int64{
		telemetry.TokensInput: u.InputTokens, telemetry.TokensOutput: u.OutputTokens, telemetry.TokensReasoning: u.ReasoningTokens,
		telemetry.TokensCacheRead: u.CacheReadTokens, telemetry.TokensCacheWrite: u.CacheWriteTokens,
	} {
		r.Metrics.Tokens(provider, kind, n)
	}
}

// outcome is how the call ended, and why if it failed.
func (c *observedCall) outcome(err error) (outcome, reason string) {
	switch cause := context.Cause(c.ctx); {
	case err == nil:
		return string(v1alpha1.OutcomeCompleted), ""
	case !c.beside && c.interrupted():
		return string(v1alpha1.OutcomeInterrupted), ""
	case errors.Is(cause, errSilent):
		return string(v1alpha1.OutcomeFailed), string(v1alpha1.ErrorProviderSilent)
	case errors.Is(cause, context.DeadlineExceeded): // Of a call beside the attempt, which nothing waits for.
		return string(v1alpha1.OutcomeFailed), string(v1alpha1.ErrorProviderUnavailable)
	case cause != nil:
		return telemetry.OutcomeAbandoned, ""
	}
	return string(v1alpha1.OutcomeFailed), string(fault.Classify(err, c.target.subject()).Reason)
}

// ending is what the span says of the reply. The conventions count cached input as input.
func (c *observedCall) ending(outcome string, u v1alpha1.TokenUsage) []attribute.KeyValue {
	attributes := []attribute.KeyValue{tracing.Outcome(outcome)}
	if c.first > 0 {
		attributes = append(attributes, attribute.Float64(telemetry.AttrTimeToFirstChunk, c.first.Seconds()))
	}
	if c.finish != "" {
		attributes = append(attributes, attribute.StringSlice(telemetry.AttrFinishReasons, []string{string(c.finish)}))
	}
	if u.TotalTokens > 0 {
		attributes = append(attributes,
			attribute.Int64(telemetry.AttrInputTokens, u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens),
			attribute.Int64(telemetry.AttrOutputTokens, u.OutputTokens),
			attribute.Int64(telemetry.AttrCacheReadTokens, u.CacheReadTokens),
			attribute.Int64(telemetry.AttrCacheCreateTokens, u.CacheWriteTokens),
			attribute.Int64(telemetry.AttrReasoningTokens, u.ReasoningTokens),
		)
	}
	if c.said != nil {
		attributes = append(attributes, attribute.String(telemetry.AttrOutputMessages, c.said.message(c.finish)))
	}
	return attributes
}

// callAttributes are what the span says of the call.
func callAttributes(a *attempt, t *target, call *fantasy.Call, stream bool) []attribute.KeyValue {
	spec := &t.config.Spec
	attributes := []attribute.KeyValue{
		attribute.String(telemetry.AttrOperation, telemetry.OperationChat),
		attribute.String(telemetry.AttrProvider, tracing.ProviderName(string(spec.Provider))),
		attribute.String(telemetry.AttrRequestModel, spec.Model),
		attribute.String(telemetry.AttrConversation, a.fence.ChatUID),
		attribute.Bool(telemetry.AttrStream, stream),
	}
	for key, value := range map[string]*int64{telemetry.AttrMaxTokens: call.MaxOutputTokens, telemetry.AttrTopK: call.TopK} {
		if value != nil {
			attributes = append(attributes, attribute.Int64(key, *value))
		}
	}
	for key, value := range map[string]*float64{
		telemetry.AttrTemperature: call.Temperature, telemetry.AttrTopP: call.TopP,
		telemetry.AttrPresencePenalty: call.PresencePenalty, telemetry.AttrFrequencyPenalty: call.FrequencyPenalty,
	} {
		if value != nil {
			attributes = append(attributes, attribute.Float64(key, *value))
		}
	}
	attributes = append(attributes, serverAttributes(spec.BaseURL)...)
	if a.Tracer.Content() {
		instructions, conversation := promptAttributes(call.Prompt)
		attributes = append(attributes,
			attribute.String(telemetry.AttrSystemInstructions, instructions), attribute.String(telemetry.AttrInputMessages, conversation))
	}
	return attributes
}

// serverAttributes name the host of a base URL, and nothing else of it: it may hold credentials.
func serverAttributes(base string) []attribute.KeyValue {
	at, err := url.Parse(base)
	if err != nil || at.Hostname() == "" {
		return nil
	}
	attributes := []attribute.KeyValue{attribute.String(telemetry.AttrServerAddress, at.Hostname())}
	if port, err := strconv.Atoi(at.Port()); err == nil {
		attributes = append(attributes, attribute.Int(telemetry.AttrServerPort, port))
	}
	return attributes
}
