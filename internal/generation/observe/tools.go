// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
)

// Tool measures a call that run runs.
func (a *Attempt) Tool(ctx context.Context, call *v1alpha1.ToolCall, builtIn bool,
	run func(context.Context) v1alpha1.ToolResult) v1alpha1.ToolResult {
	label := a.toolLabel(call.Name, builtIn)
	ctx, span := a.observer.options.Tracer.StartToolCall(ctx, label, func() []attribute.KeyValue {
		return a.toolAttributes(call)
	})
	began := a.observer.options.Now()
	result := run(ctx)
	a.toolEnded(ctx, span, &result, label, a.observer.options.Now().Sub(began))
	return result
}

func (a *Attempt) toolEnded(ctx context.Context, span tracing.Span, result *v1alpha1.ToolResult, label string,
	lasted time.Duration) {
	outcome, errorType := telemetry.CallSucceeded, ""
	switch {
	case result.IsError && ctx.Err() != nil:
		outcome = telemetry.CallInterrupted
	case result.IsError:
		// What a tool says went wrong can hold content.
		outcome, errorType = telemetry.CallFailed, telemetry.ToolError
	}
	a.observer.options.Metrics.ToolCalled(label, outcome, a.readable(result), lasted)
	span.Set(tracing.Outcome(outcome))
	if a.observer.options.Tracer.Content() {
		span.Set(attribute.String(telemetry.AttrToolResult, clip.Ellipsis(result.Output, maxContentText)))
	}
	span.End(errorType)
}

// readable is how many bytes of a result the model gets.
func (a *Attempt) readable(result *v1alpha1.ToolResult) int {
	return min(len(result.Output), tools.ResultLimitOf(a.chat))
}

// ClientResults measures the results of clients that the model is about to read for the first time.
func (a *Attempt) ClientResults(messages []v1alpha1.ChatMessage) {
	if a.fence.Attempt > 1 {
		return
	}
	for i := len(messages) - 1; i >= 0 && messages[i].Spec.Role != v1alpha1.RoleAssistant; i-- {
		for j := range messages[i].Spec.Parts {
			if result := messages[i].Spec.Parts[j].ToolResult; result != nil && messages[i].Spec.Generation == nil {
				a.observer.options.Metrics.ClientResult(a.readable(result))
			}
		}
	}
}

// ToolDenied counts a call that people did not allow.
func (a *Attempt) ToolDenied(name string, builtIn bool) {
	a.observer.options.Metrics.ToolDenied(a.toolLabel(name, builtIn))
}

func (a *Attempt) toolAttributes(call *v1alpha1.ToolCall) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String(telemetry.AttrOperation, telemetry.OperationExecuteTool),
		attribute.String(telemetry.AttrToolName, call.Name),
		attribute.String(telemetry.AttrToolType, "function"),
		attribute.String(telemetry.AttrToolCallID, call.ID),
		attribute.String(telemetry.AttrConversation, a.fence.ChatUID),
	}
	if a.observer.options.Tracer.Content() {
		arguments := clip.Ellipsis(call.Input, maxContentText)
		attributes = append(attributes, attribute.String(telemetry.AttrToolArguments, arguments))
	}
	return attributes
}

// toolLabel names a tool by one of a closed set: models do call tools that there are not.
func (a *Attempt) toolLabel(name string, builtIn bool) string {
	switch {
	case builtIn:
		return name
	case a.ofMCP(name):
		return telemetry.ToolOfMCP
	}
	return telemetry.ToolOfClient
}

// ofMCP reports whether the name is that of a tool of one of the chat's MCP servers, and of none of its client.
func (a *Attempt) ofMCP(name string) bool {
	server := mcp.ServerOf(name)
	return tools.RequiresAction(a.chat.Spec.Tools, name) != v1alpha1.RequiresClient &&
		slices.ContainsFunc(a.chat.Spec.MCPServers, func(s v1alpha1.MCPServer) bool { return s.Name == server })
}
