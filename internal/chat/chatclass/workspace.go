// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// WithinWorkspace is the policy of a chat that works in the workspace of another one: what the class of that one
// denies, or gives to approval, of the tools that work there, holds besides the chat's own policy.
func WithinWorkspace(own *v1beta1.ChatTools, class *v1beta1.ChatClass, tools []string) *v1beta1.ChatTools {
	if class == nil || class.Spec.Restrictions == nil || class.Spec.Restrictions.Tools == nil {
		return own
	}
	rules, bounds := &v1beta1.ChatTools{ToolPolicy: *class.Spec.Restrictions.Tools}, v1beta1.ToolPolicy{}
	for _, name := range tools {
		if !toolpolicy.Allows(rules, name) {
			bounds.Deny = append(bounds.Deny, v1beta1.ToolPattern(name))
		}
		if toolpolicy.NeedsApproval(rules, name) {
			bounds.Approval = append(bounds.Approval, v1beta1.ToolPattern(name))
		}
	}
	return bounded(own, bounds)
}

// WithoutWorkspace is the policy of a chat that may not work in any workspace.
func WithoutWorkspace(own *v1beta1.ChatTools, tools []string) *v1beta1.ChatTools {
	bounds := v1beta1.ToolPolicy{}
	for _, name := range tools {
		bounds.Deny = append(bounds.Deny, v1beta1.ToolPattern(name))
	}
	return bounded(own, bounds)
}

func bounded(own *v1beta1.ChatTools, bounds v1beta1.ToolPolicy) *v1beta1.ChatTools {
	tools := v1beta1.ChatTools{}
	if own != nil {
		tools = *own
	}
	tools.ToolPolicy = toolpolicy.Within(tools.ToolPolicy, bounds)
	return &tools
}

// CommandsRefused is why the MCP servers of a chat may not run in the workspace of another one; empty if they may.
// owner is the chat whose workspace it is, and class that of it.
func CommandsRefused(owner string, class *v1beta1.ChatClass) string {
	if class == nil || class.Spec.Restrictions == nil ||
		!slices.Contains(class.Spec.Restrictions.Fields, v1beta1.FieldMCPServers) {
		return ""
	}
	return fmt.Sprintf("the workspace belongs to chat %s, and its ChatClass %s does not let chats choose the MCP servers "+
		"that run there", owner, class.Name)
}
