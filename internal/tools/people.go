// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/jsonschema"
	"parley.dev/parley/internal/toolpolicy"
)

// clientTool is a tool that a client of the chat runs.
type clientTool struct{ *v1alpha1.ClientTool }

func (t clientTool) Name() string        { return t.ClientTool.Name }
func (t clientTool) Description() string { return t.ClientTool.Description }

// InputSchema is the schema that the chat gives, or that of an object without properties.
func (t clientTool) InputSchema() map[string]any {
	var schema map[string]any
	if given := t.ClientTool.InputSchema; given != nil {
		schema, _ = jsonschema.Object(given.Raw) // SchemaError reports what is no object.
	}
	if schema == nil {
		schema = map[string]any{}
	}
	if _, ok := schema["type"]; !ok {
		schema["type"] = "object"
	}
	return schema
}

// SchemaError is why a tool of the chat's client cannot be offered; nil: it can. A provider refuses a request because
// of one invalid schema, with all its other tools.
func SchemaError(t Tool) error {
	ofClient, ok := t.(clientTool)
	if !ok || ofClient.ClientTool.InputSchema == nil {
		return nil
	}
	if err := jsonschema.Check(string(ofClient.ClientTool.InputSchema.Raw)); err != nil {
		return err
	}
	if kind := ofClient.InputSchema()["type"]; kind != "object" {
		return errors.New("its type must be object")
	}
	return nil
}

// Run is never called: the result comes from the client.
func (clientTool) Run(context.Context, Call) (string, error) {
	return "", errors.New("this tool is run by the client of the chat")
}

// OfClient are the tools that a client of the chat runs and that the chat allows, in their order.
func OfClient(spec *v1alpha1.ChatTools) []Tool {
	if spec == nil {
		return nil
	}
	all := make([]Tool, 0, len(spec.Client))
	for i := range spec.Client {
		if toolpolicy.Allows(spec, spec.Client[i].Name) {
			all = append(all, clientTool{&spec.Client[i]})
		}
	}
	return all
}

// RequiresAction is whose action a call of the tool requires before Parley can go on; empty: nobody's. A client decides
// itself about its own tools. A call of one that is not allowed gets its result from Parley.
func RequiresAction(spec *v1alpha1.ChatTools, name string) v1alpha1.RequiredAction {
	switch {
	case !toolpolicy.Allows(spec, name):
	case spec != nil && slices.ContainsFunc(spec.Client, func(c v1alpha1.ClientTool) bool { return c.Name == name }):
		return v1alpha1.RequiresClient
	case toolpolicy.NeedsApproval(spec, name):
		return v1alpha1.RequiresApproval
	}
	return ""
}

// DueCalls are the calls that Parley can answer now.
type DueCalls struct {
	// Reply is the version of the history that the reply with the calls was made for, which no other reply of the chat
	// has; 0 for a reply that was imported.
	Reply int64
	// Run are to be run.
	Run []v1alpha1.ToolCall
	// Denied are the results of those that people denied.
	Denied []v1alpha1.ToolResult
	// Decisions are what people decided about both.
	Decisions []v1alpha1.ToolDecision
}

// Due finds the calls of the newest reply that have no result and wait for nobody, or have been decided about. A call
// that has asked people is made again whatever they decide: it has been approved before, if that was required, and
// learns that they give no answer.
func Due(history []v1alpha1.ChatMessage, decisions []v1alpha1.ToolDecision) DueCalls {
	calls, reply := outstanding(history)
	due := DueCalls{Reply: reply}
	for _, call := range calls {
		i := slices.IndexFunc(decisions, func(d v1alpha1.ToolDecision) bool { return d.ID == call.ID })
		if i >= 0 {
			kept := decisions[i]
			kept.Content = ""
			due.Decisions = append(due.Decisions, kept)
		}
		switch {
		case call.RequiresAction == "" || asks(history, call.ID):
			due.Run = append(due.Run, call)
		case i < 0:
		case decisions[i].Decision == v1alpha1.DecisionDeny:
			due.Denied = append(due.Denied, denied(call, decisions[i].Comment))
		case approval.Applies(&decisions[i], new(approval.Of(&call))):
			due.Run = append(due.Run, call)
		default:
			due.Denied = append(due.Denied, v1alpha1.ToolResult{ID: call.ID, Name: call.Name, Output: notSeen, IsError: true})
		}
	}
	return due
}

// notSeen is what the model reads of a call that is not the one that was approved.
const notSeen = "The call was not run: it is not the call that a person has approved. Make it again if it is still " +
	"needed."

// asks reports whether a call has asked people since the newest reply.
func asks(history []v1alpha1.ChatMessage, id string) bool {
	for i := range slices.Backward(history) {
		m := &history[i].Spec
		if m.Role == v1alpha1.RoleAssistant {
			return false
		}
		if g := m.Generation; g != nil &&
			slices.ContainsFunc(g.Questions, func(q v1alpha1.ToolQuestion) bool { return q.ID == id }) {
			return true
		}
	}
	return false
}

// outstanding are the calls of the newest reply that have no result, and the version that it was made for.
func outstanding(history []v1alpha1.ChatMessage) (calls []v1alpha1.ToolCall, reply int64) {
	answered := map[string]bool{}
	for _, m := range slices.Backward(history) {
		calls = nil
		for i := range m.Spec.Parts {
			switch part := &m.Spec.Parts[i]; {
			case part.ToolResult != nil:
				answered[part.ToolResult.ID] = true
			case part.ToolCall != nil && !part.ToolCall.ProviderExecuted:
				calls = append(calls, *part.ToolCall)
			}
		}
		if m.Spec.Role == v1alpha1.RoleAssistant {
			if m.Spec.Generation != nil {
				reply = m.Spec.Generation.HistoryVersion
			}
			return slices.DeleteFunc(calls, func(c v1alpha1.ToolCall) bool { return answered[c.ID] }), reply
		}
	}
	return nil, 0
}

func denied(call v1alpha1.ToolCall, comment string) v1alpha1.ToolResult {
	output := "A person denied this call, so it was not run."
	if call.ApprovalCause == v1alpha1.ApprovalPlanProposed {
		output = "A person did not approve this plan. Propose another one, or ask what is wrong with it."
	}
	if comment != "" {
		output += " They said: " + comment
	}
	return v1alpha1.ToolResult{ID: call.ID, Name: call.Name, Output: output, IsError: true}
}
