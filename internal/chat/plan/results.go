// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// clientResults is what a client's Tool message says, compared with the calls that wait.
type clientResults struct {
	message, uid string
	// problem says what is wrong with them, and what to do; empty for right ones.
	problem string
	// stoppedBy is the tool of the first of them that ends the turn; empty if none does.
	stoppedBy string
}

// compareResults compares the message with the calls that wait for a client. They are those that the chat waits for
// now: a message may have been written for others.
func compareResults(p *pass, message *v1beta1.ChatMessage) clientResults {
	waiting, given := waitingForClient(p), map[string]*v1beta1.ToolResult{}
	wrong := func(problem string) clientResults {
		return clientResults{message: message.Name, problem: problem + ": delete this message and create a right one"}
	}
	for i := range message.Spec.Parts {
		if result := message.Spec.Parts[i].ToolResult; result != nil {
			if problem := checkResult(result, waiting, given); problem != "" {
				return wrong(problem)
			}
			given[result.ID] = result
		}
	}
	for _, call := range waiting {
		if given[call.ID] == nil {
			return wrong("Tool call " + call.ID + " has no result, and all must be answered in one message")
		}
	}
	return clientResults{message: message.Name, uid: string(message.UID),
		stoppedBy: stoppedByClient(p.chat.Spec.Tools, waiting, given)}
}

// waitingForClient are the calls that wait for a client, in their order.
func waitingForClient(p *pass) (waiting []v1beta1.PendingToolCall) {
	if required := p.status().RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if call.Kind == v1beta1.RequiresClient {
				waiting = append(waiting, call)
			}
		}
	}
	return waiting
}

// checkResult says what is wrong with a result; empty for a right one.
func checkResult(result *v1beta1.ToolResult, waiting []v1beta1.PendingToolCall,
	given map[string]*v1beta1.ToolResult) (problem string) {
	switch {
	case given[result.ID] != nil:
		return "Tool call " + result.ID + " has two results"
	case !slices.ContainsFunc(waiting, func(c v1beta1.PendingToolCall) bool { return c.ID == result.ID }):
		return "No tool call " + result.ID + " waits for a client"
	case !json.Valid([]byte(result.Output)):
		return "The output for tool call " + result.ID + " is not valid JSON"
	}
	return ""
}

// stoppedByClient is the tool of the first call, in their order, whose result ends the turn; empty if none does. The
// results name no tools that could be relied on.
func stoppedByClient(tools *v1beta1.ChatTools, waiting []v1beta1.PendingToolCall,
	given map[string]*v1beta1.ToolResult) string {
	var inOrder []v1beta1.ToolResult
	for _, call := range waiting {
		inOrder = append(inOrder, v1beta1.ToolResult{ID: call.ID, Name: call.Name, IsError: given[call.ID].IsError})
	}
	return tools.StoppedBy(inOrder)
}
