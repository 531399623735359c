// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"parley.dev/parley/api/v1alpha1"
)

// earlier shows the conversation that a chat continues from.
func (p *printer) earlier(history []v1alpha1.PriorMessage) {
	p.note("continues from a conversation of %d messages that was led elsewhere:", len(history))
	for i := range history {
		m := &history[i]
		switch m.Role {
		case v1alpha1.RoleUser:
			p.asked(m.Content)
		case v1alpha1.RoleAssistant:
			p.write(m.Content)
		}
		for j := range m.ToolCalls {
			p.call(m.ToolCalls[j].ID, m.ToolCalls[j].Name, m.ToolCalls[j].Input)
		}
		for j := range m.ToolResults {
			p.result(m.ToolResults[j].ID, m.ToolResults[j].Name, m.ToolResults[j].Output)
		}
		if p.openCall == "" {
			p.endLine()
		}
		p.prose = markdown{}
	}
}
