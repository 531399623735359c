// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"parley.dev/parley/internal/telemetry"
)

// TurnEnd is what is known of a turn when it has ended.
type TurnEnd struct {
	Turn
	// Ended is when. There is no span of a turn that is not known to have begun.
	Ended time.Time
	// Namespace and Chat, and the Message that began the turn.
	Namespace, Chat, Message string
	// Provider, as the ChatModelConfig has it, and Model that answered.
	Provider, Model string
	// Result of the turn, ErrorType if it failed, and how many Assistant messages it has.
	Result, ErrorType string
	Steps             int32
}

// EndTurn makes the span of a turn.
func (t *Tracer) EndTurn(ctx context.Context, e TurnEnd) {
	if !t.on || e.Began.IsZero() {
		return
	}
	_, span := t.startTurn(ctx, e.Turn)
	span.SetAttributes(
		attribute.String(telemetry.AttrOperation, telemetry.OperationInvokeAgent),
		attribute.String(telemetry.AttrAgentName, "parley"),
		attribute.String(telemetry.AttrConversation, e.ChatUID),
		attribute.String(telemetry.AttrNamespace, e.Namespace),
		attribute.String(telemetry.AttrChat, e.Chat),
		attribute.String(telemetry.AttrMessage, e.Message),
		attribute.String(telemetry.AttrTurnResult, e.Result),
		attribute.Int(telemetry.AttrTurnSteps, int(e.Steps)),
	)
	if e.Provider != "" {
		span.SetAttributes(attribute.String(telemetry.AttrProvider, ProviderName(e.Provider)),
			attribute.String(telemetry.AttrRequestModel, e.Model))
	}
	fail(span, e.ErrorType)
	span.End(trace.WithTimestamp(e.Ended))
}

// startTurn starts the span of a turn. Only the manager ends it: one that is not ended is not exported.
func (t *Tracer) startTurn(ctx context.Context, turn Turn) (context.Context, trace.Span) {
	ctx = turn.under(ctx)
	_, span := t.tracer.Start(turn.ids().in(ctx), telemetry.SpanTurn, trace.WithTimestamp(turn.Began),
		trace.WithSpanKind(trace.SpanKindInternal))
	return trace.ContextWithSpan(ctx, span), span
}

// Step is what is known of an attempt when it begins.
type Step struct {
	Turn  Turn
	Fence Fence
	// Namespace and Chat, and the Action to perform.
	Namespace, Chat, Action string
}

// StartStep starts the span of one attempt at a step. The caller ends it with End.
func (t *Tracer) StartStep(ctx context.Context, s Step) (context.Context, Span) {
	if !t.on {
		return ctx, Span{noSpan}
	}
	// Whether the turn is sampled follows from its ids, here as in the manager.
	ctx, _ = t.startTurn(ctx, s.Turn)
	own := presetIDs{trace: trace.SpanContextFromContext(ctx).TraceID(), span: s.Fence.span()}
	_, span := t.tracer.Start(own.in(ctx), telemetry.SpanStep+" "+s.Action, trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(
			attribute.String(telemetry.AttrConversation, s.Fence.ChatUID),
			attribute.String(telemetry.AttrNamespace, s.Namespace),
			attribute.String(telemetry.AttrChat, s.Chat),
			attribute.String(telemetry.AttrAction, s.Action),
			attribute.Int64(telemetry.AttrHistoryVersion, s.Fence.HistoryVersion),
			attribute.Int(telemetry.AttrAttempt, int(s.Fence.Attempt)),
		))
	return trace.ContextWithSpan(ctx, span), Span{span}
}

// StartModelCall starts the span of a call of the model.
func (t *Tracer) StartModelCall(ctx context.Context, model string,
	attributes func() []attribute.KeyValue) (context.Context, Span) {
	return t.start(ctx, telemetry.OperationChat+" "+model, trace.SpanKindClient, attributes)
}

// StartToolCall starts the span of a call of a tool.
func (t *Tracer) StartToolCall(ctx context.Context, tool string,
	attributes func() []attribute.KeyValue) (context.Context, Span) {
	return t.start(ctx, telemetry.OperationExecuteTool+" "+tool, trace.SpanKindInternal, attributes)
}

func (t *Tracer) start(ctx context.Context, name string, kind trace.SpanKind,
	attributes func() []attribute.KeyValue) (context.Context, Span) {
	if !t.on {
		return ctx, Span{noSpan}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	if span.IsRecording() {
		span.SetAttributes(attributes()...)
	}
	return ctx, Span{span}
}

var noSpan = trace.SpanFromContext(context.Background())

// Span is a span under way.
type Span struct{ span trace.Span }

// Recording reports whether it is worth to find out what to set.
func (s Span) Recording() bool { return s.span.IsRecording() }

// Set adds attributes.
func (s Span) Set(attributes ...attribute.KeyValue) { s.span.SetAttributes(attributes...) }

// End ends the span. errorType is the reason of what went wrong; empty if nothing did.
func (s Span) End(errorType string) {
	fail(s.span, errorType)
	s.span.End()
}

// fail marks the span. The error itself can hold keys and content, so only its class is recorded.
func fail(span trace.Span, errorType string) {
	if errorType != "" {
		span.SetAttributes(attribute.String(telemetry.AttrErrorType, errorType))
		span.SetStatus(codes.Error, errorType)
	}
}

// ProviderName is what the GenAI conventions call the provider of a ChatModelConfig.
func ProviderName(provider string) string {
	switch provider {
	case "google":
		return "gcp.gemini"
	case "azure":
		return "azure.ai.openai"
	case "bedrock":
		return "aws.bedrock"
	}
	return provider
}

// Outcome is how an attempt or a call ended.
func Outcome(outcome string) attribute.KeyValue {
	return attribute.String(telemetry.AttrOutcome, outcome)
}
