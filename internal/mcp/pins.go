// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"maps"
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// Pinned are the hashes of the definitions that the messages pin, by the names of the tools. The latest pin counts.
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

// OnOffer reports whether the model was offered a tool when it made the newest reply. It is not known whether a call of
// another tool requires approval.
func OnOffer(messages []v1alpha1.ChatMessage) func(name string) bool {
	pinned := Pinned(messages)
	var without []v1alpha1.MCPServerUnavailable
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

// Unpinned are the offered definitions without a pin.
func Unpinned(offered, pinned map[string]string) []v1alpha1.MCPTool {
	unpinned := maps.Clone(offered)
	maps.DeleteFunc(unpinned, func(name, _ string) bool { return pinned[name] != "" })
	return Sorted(unpinned)
}

// Sorted are definitions sorted by name, at most the limit of a message.
func Sorted(hashes map[string]string) []v1alpha1.MCPTool {
	all := make([]v1alpha1.MCPTool, 0, len(hashes))
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		if len(all) < v1alpha1.MaxMCPServers*v1alpha1.MaxMCPServerTools {
			all = append(all, v1alpha1.MCPTool{Name: name, Hash: hashes[name]})
		}
	}
	return all
}

// Approved are the changed definitions that the message pins because a person has approved calls of the reply.
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
