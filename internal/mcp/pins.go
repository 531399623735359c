// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"maps"
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// Pinned are the hashes of the definitions that hold after the messages, by the names of the tools: a later message
// pins another one in place of that of an earlier one.
func Pinned(messages []v1alpha1.ChatMessage) map[string]string {
	pinned := map[string]string{}
	for i := range messages {
		g := messages[i].Spec.Generation
		if g == nil || g.MCP == nil {
			continue
		}
		for _, tool := range g.MCP.Pinned {
			pinned[tool.Name] = tool.Hash
		}
	}
	return pinned
}

// OnOffer tells whether the model was offered a tool when it made the newest reply. A call of any other one was stamped
// by nobody who knew whether it requires approval.
func OnOffer(messages []v1alpha1.ChatMessage) func(name string) bool {
	pinned, without := Pinned(messages), []v1alpha1.MCPServerUnavailable(nil)
	for i := range slices.Backward(messages) {
		if messages[i].Spec.Role != v1alpha1.RoleAssistant {
			continue
		}
		if g := messages[i].Spec.Generation; g != nil && g.MCP != nil {
			without = g.MCP.Unavailable
		}
		break
	}
	return func(name string) bool {
		return pinned[name] != "" && !slices.ContainsFunc(without, func(s v1alpha1.MCPServerUnavailable) bool {
			return s.Name == ServerOf(name)
		})
	}
}

// Unpinned are those of the offered definitions that nothing is pinned for.
func Unpinned(offered, pinned map[string]string) []v1alpha1.MCPTool {
	fresh := map[string]string{}
	for name, hash := range offered {
		if pinned[name] == "" {
			fresh[name] = hash
		}
	}
	return Sorted(fresh)
}

// Sorted are definitions sorted by name, at most as many as a message holds.
func Sorted(hashes map[string]string) []v1alpha1.MCPTool {
	all := make([]v1alpha1.MCPTool, 0, len(hashes))
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		if len(all) < v1alpha1.MaxMCPServers*v1alpha1.MaxMCPServerTools {
			all = append(all, v1alpha1.MCPTool{Name: name, Hash: hashes[name]})
		}
	}
	return all
}

// Approved are the definitions that the message pins because a person has approved calls of changed tools that reply
// made: they hold from then on.
func Approved(reply *v1alpha1.ChatMessage, approved []v1alpha1.ToolCall) []v1alpha1.MCPTool {
	if reply == nil || reply.Spec.Generation == nil || reply.Spec.Generation.MCP == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(reply.Spec.Generation.MCP.Changed), func(tool v1alpha1.MCPTool) bool {
		return !slices.ContainsFunc(approved, func(call v1alpha1.ToolCall) bool {
			return call.Name == tool.Name && call.ApprovalCause == v1alpha1.ApprovalToolChanged
		})
	})
}
