// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
)

// Attempt is the span of one attempt, and calls models for it.
type Attempt struct {
	Caller
	fence fence.Fence
	span  tracing.Span
	// ended removes it from the running attempts; nil once it has been called.
	ended func()
}

// Begin begins to observe an attempt. The returned context carries its span.
func (o *Observer) Begin(ctx context.Context, chat *v1beta1.Chat, of fence.Fence) (context.Context, *Attempt) {
	action := chat.Status.Generation.Action
	a := &Attempt{
		Caller: Caller{observer: o, chat: chat, action: action}, fence: of, ended: o.options.Metrics.AttemptBegan(),
	}
	s := tracing.Step{
		Fence:     tracing.Fence{ChatUID: of.ChatUID, HistoryVersion: of.HistoryVersion, Attempt: of.Attempt},
		Namespace: o.options.Namespace, Chat: chat.Name, Action: string(action),
	}
	if t := chat.Status.Turn; t != nil {
		s.Turn = tracing.Turn{ChatUID: of.ChatUID, HistoryVersion: t.HistoryVersion, Traceparent: t.Traceparent}
		if t.StartedAt != nil {
			s.Turn.Began = t.StartedAt.Time
		}
	}
	ctx, a.span = o.options.Tracer.StartStep(ctx, s)
	return ctx, a
}

// SetAuthor sets who created the message of the turn, for the recordings of later calls.
func (a *Attempt) SetAuthor(author string) { a.author = author }

// End ends the span with the outcome of the attempt. Only the first call has an effect.
func (a *Attempt) End(kind v1beta1.GenerationOutcome, err *v1beta1.GenerationError) {
	if a.ended == nil {
		return
	}
	errorType := ""
	switch {
	case err != nil:
		errorType = string(err.Reason)
	case kind == v1beta1.OutcomeLost:
		errorType = string(kind)
	}
	a.span.Set(tracing.Outcome(string(kind)))
	a.span.End(errorType)
	a.forget()
}

// Found ends the span of an attempt whose result exists already. A lost attempt may be one whose former process has
// made this span together with the result: then there is no second span.
func (a *Attempt) Found(kind v1beta1.GenerationOutcome, err *v1beta1.GenerationError) {
	if kind == v1beta1.OutcomeLost {
		a.forget()
	}
	a.End(kind, err)
}

// Abandon ends the span of an attempt that has no result.
func (a *Attempt) Abandon() { a.End(telemetry.OutcomeAbandoned, nil) }

// forget drops the span: without an end it is not exported.
func (a *Attempt) forget() {
	if a.ended != nil {
		a.ended()
		a.ended = nil
	}
}

// ResultRefused counts a result that the API server refused.
func (a *Attempt) ResultRefused(reason string) { a.observer.options.Metrics.ResultRefused(reason) }

// PartsDropped counts parts that did not reach the relay.
func (a *Attempt) PartsDropped(n int64) { a.observer.options.Metrics.PartsDropped(n) }

// Tool runs and measures a call of a tool.
func (a *Attempt) Tool(ctx context.Context, call *v1beta1.ToolCall, builtIn bool,
	run func(context.Context) v1beta1.ToolResult) v1beta1.ToolResult {
	label := a.toolLabel(call.Name, builtIn)
	ctx, span := a.observer.options.Tracer.StartToolCall(ctx, label, func() []attribute.KeyValue {
		return a.toolAttributes(call)
	})
	began := a.observer.options.Now()
	result := run(ctx)
	a.endTool(ctx, span, &result, label, a.observer.options.Now().Sub(began))
	return result
}

func (a *Attempt) endTool(ctx context.Context, span tracing.Span, result *v1beta1.ToolResult, label string,
	duration time.Duration) {
	outcome, errorType := telemetry.CallSucceeded, ""
	switch {
	case result.IsError && ctx.Err() != nil:
		outcome = telemetry.CallInterrupted
	case result.IsError:
		outcome, errorType = telemetry.CallFailed, telemetry.ToolError // The tool's own error can hold content.
	}
	a.observer.options.Metrics.ToolCalled(label, outcome, a.readableBytes(result), duration)
	span.Set(tracing.Outcome(outcome))
	if a.observer.options.Tracer.Content() {
		span.Set(attribute.String(telemetry.AttrToolResult, clip.Ellipsis(result.Output, maxContentText)))
	}
	span.End(errorType)
}

// readableBytes is how much of a result the model reads.
func (a *Attempt) readableBytes(result *v1beta1.ToolResult) int {
	return min(len(result.Output), tools.ResultLimitOf(a.chat))
}

// ClientResults measures the results of clients that the model reads for the first time.
func (a *Attempt) ClientResults(messages []v1beta1.ChatMessage) {
	if a.fence.Attempt > 1 {
		return
	}
	for _, m := range slices.Backward(messages) {
		if m.Spec.Role == v1beta1.RoleAssistant {
			return
		}
		for _, part := range m.Spec.Parts {
			if part.ToolResult != nil && m.Spec.Generation == nil {
				a.observer.options.Metrics.ClientResult(a.readableBytes(part.ToolResult))
			}
		}
	}
}

// ToolDenied counts a call that people denied.
func (a *Attempt) ToolDenied(name string, builtIn bool) {
	a.observer.options.Metrics.ToolDenied(a.toolLabel(name, builtIn))
}

func (a *Attempt) toolAttributes(call *v1beta1.ToolCall) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String(telemetry.AttrOperation, telemetry.OperationExecuteTool),
		attribute.String(telemetry.AttrToolName, call.Name),
		attribute.String(telemetry.AttrToolType, "function"),
		attribute.String(telemetry.AttrToolCallID, call.ID),
		attribute.String(telemetry.AttrConversation, a.fence.ChatUID),
	}
	if a.observer.options.Tracer.Content() {
		attributes = append(attributes,
			attribute.String(telemetry.AttrToolArguments, clip.Ellipsis(call.Input, maxContentText)))
	}
	return attributes
}

// toolLabel is one of a closed set: models also call tools that do not exist.
func (a *Attempt) toolLabel(name string, builtIn bool) string {
	server := mcp.ServerOf(name)
	switch {
	case builtIn:
		return name
	case tools.RequiresAction(a.chat.Spec.Tools, name) != v1beta1.RequiresClient &&
		slices.ContainsFunc(a.chat.Spec.MCPServers, func(s v1beta1.MCPServer) bool { return s.Name == server }):
		return telemetry.ToolOfMCP
	}
	return telemetry.ToolOfClient
}
