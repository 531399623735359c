// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "parley.dev/parley/api/v1beta1"

// role is what a chat is there for during an upgrade, in addition to plain questions.
type role string

const (
	// approves is a chat whose calls of current_time wait for a person.
	approves role = "approves"
	// commands is a chat whose model runs commands in a workspace.
	commands role = "commands"
	// delegates is a chat whose model starts sub-chats.
	delegates role = "delegates"
)

// roleOf is the role of the chat of the number; empty for most.
func roleOf(number int) role {
	switch {
	case number%10 == 9:
		return approves
	case number%5 == 3:
		return commands
	case number%5 == 1:
		return delegates
	}
	return ""
}

// settings are those of a chat of the role.
func (r role) settings() (s v1beta1.ChatSettings) {
	switch r {
	case approves:
		s.Tools = &v1beta1.ChatTools{ToolPolicy: v1beta1.ToolPolicy{Approval: []v1beta1.ToolPattern{"current_time"}}}
	case commands:
		s.Workspace = &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: templateName}}
	case delegates:
		s.SubAgents = &v1beta1.SubAgentSettings{Enabled: new(true)}
	}
	return s
}

// kind is that of the question of the number in a chat of the role; empty: any.
func (r role) kind(number int) kind {
	switch {
	case r == approves && number == 0:
		return tool
	case r == commands && number%2 == 0:
		return command
	case r == commands:
		return background
	case r == delegates && number%3 == 0:
		return agent
	}
	return ""
}
