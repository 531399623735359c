// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chattest

import "parley.dev/parley/api/v1beta1"

// Without is that the model was asked without the tools of these MCP servers.
func Without(servers ...string) Reply {
	return func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.MCP = &v1beta1.MCPAccount{}
		for _, name := range servers {
			m.Spec.Generation.MCP.Unavailable = append(m.Spec.Generation.MCP.Unavailable,
				v1beta1.MCPServerUnavailable{Name: name, Reason: v1beta1.MCPTimedOut, Message: "it did not answer in time"})
		}
	}
}

// Question is what a call of Asks asks people.
func Question(id string) *v1beta1.ToolQuestion {
	return &v1beta1.ToolQuestion{ID: id, Name: tool, Requests: `{"who":{"method":"elicitation/create"}}`,
		ToolState: "sealed"}
}

// Asks is that these calls ask people for input instead of having a result.
func Asks(ids ...string) Reply {
	return func(m *v1beta1.ChatMessage) {
		for _, id := range ids {
			m.Spec.Generation.Questions = append(m.Spec.Generation.Questions, *Question(id))
		}
	}
}
