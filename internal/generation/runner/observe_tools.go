// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/clip"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/tools"
)

// observeTool measures a call: it returns the context to run it in, and what to tell of its result.
func (a *attempt) observeTool(ctx context.Context, call *v1alpha1.ToolCall, builtIn bool) (context.Context, func(*v1alpha1.ToolResult)) {
	ctx, span := a.Tracer.StartToolCall(ctx, toolLabel(call.Name, builtIn), func() []attribute.KeyValue { return a.toolAttributes(call) })
	return ctx, func(result *v1alpha1.ToolResult) { a.toolEnded(ctx, span, result, builtIn) }
}

func (a *attempt) toolEnded(ctx context.Context, span tracing.Span, result *v1alpha1.ToolResult, builtIn bool) {
	outcome, errorType := telemetry.CallSucceeded, ""
	switch {
	case result.IsError && ctx.Err() != nil:
		outcome = telemetry.CallInterrupted
	case result.IsError:
		// What a tool says went wrong can hold content.
		outcome, errorType = telemetry.CallFailed, telemetry.ToolError
	}
	a.Metrics.ToolCalled(toolLabel(result.Name, builtIn), outcome, a.readable(result))
	span.Set(tracing.Outcome(outcome))
	if a.Tracer.Content() {
		span.Set(attribute.String(telemetry.AttrToolResult, clip.Ellipsis(result.Output, maxContentText)))
	}
	span.End(errorType)
}

// readable is how many bytes of a result the model gets.
func (a *attempt) readable(result *v1alpha1.ToolResult) int {
	return min(len(result.Output), tools.ResultLimitOf(a.chat))
}

// measureClients measures the results of clients that the model is about to read for the first time.
func (a *attempt) measureClients(messages []v1alpha1.ChatMessage) {
	if a.fence.Attempt > 1 {
		return
	}
	for i := len(messages) - 1; i >= 0 && messages[i].Spec.Role != v1alpha1.RoleAssistant; i-- {
		for j := range messages[i].Spec.Parts {
			if result := messages[i].Spec.Parts[j].ToolResult; result != nil && messages[i].Spec.Generation == nil {
				a.Metrics.ClientResult(a.readable(result))
			}
		}
	}
}

func (a *attempt) toolAttributes(call *v1alpha1.ToolCall) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String(telemetry.AttrOperation, telemetry.OperationExecuteTool),
		attribute.String(telemetry.AttrToolName, call.Name),
		attribute.String(telemetry.AttrToolType, "function"),
		attribute.String(telemetry.AttrToolCallID, call.ID),
		attribute.String(telemetry.AttrConversation, a.fence.ChatUID),
	}
	if a.Tracer.Content() {
		attributes = append(attributes, attribute.String(telemetry.AttrToolArguments, clip.Ellipsis(call.Input, maxContentText)))
	}
	return attributes
}

// toolLabel names a tool by one of a closed set: models do call tools that there are not.
func toolLabel(name string, builtIn bool) string {
	if builtIn {
		return name
	}
	return telemetry.ToolOfClient
}

// countDenied counts the calls that people did not allow.
func (a *attempt) countDenied(denied []v1alpha1.ToolResult) {
	for i := range denied {
		a.Metrics.ToolDenied(toolLabel(denied[i].Name, a.Tools.Has(denied[i].Name)))
	}
}
