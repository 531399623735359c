// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// Changing is a Tool whose results decide something about the sub-chats of the chat. It changes nothing itself: the
// operator does what was decided, once, when it has the result. So calls may be made again, and a call whose result is
// lost has decided nothing.
type Changing interface {
	Repeatable
	// Change is what a call decides that succeeded. It follows from the call alone.
	Change(call Call) v1alpha1.AgentChange
}

// Changes are what the results of a batch decide about sub-chats, and the results: those that would decide more than
// one message can say become errors.
func (r *Registry) Changes(batch *Batch, results []v1alpha1.ToolResult) (
	[]v1alpha1.AgentChange, []v1alpha1.ToolResult,
) {
	inputs := make(map[string]string, len(batch.Calls))
	for _, call := range batch.Calls {
		inputs[call.ID] = call.Input
	}
	var changes []v1alpha1.AgentChange
	for i := range results {
		result := &results[i]
		tool, ok := r.tools[result.Name].(Changing)
		input, called := inputs[result.ID]
		switch {
		case !ok || !called || result.IsError:
		case len(changes) == v1alpha1.MaxAgentChanges:
			result.IsError, result.Output = true, fmt.Sprintf("nothing was done: the calls of one reply may start %d agents, "+
				"or tell them something; make this call in your next reply", v1alpha1.MaxAgentChanges)
		default:
			call := Call{ID: result.ID, Key: batch.key(result.ID), Input: input, Chat: batch.Chat}
			changes = append(changes, tool.Change(call))
		}
	}
	return changes, results
}
