// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/test/kit/check"
)

func pinning(tools ...v1alpha1.MCPTool) v1alpha1.ChatMessage {
	return v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{
		Generation: &v1alpha1.MessageGeneration{MCP: &v1alpha1.MCPAccount{Pinned: tools}},
	}}
}

func TestLaterPinReplacesEarlierPin(t *testing.T) {
	got := mcp.Pinned([]v1alpha1.ChatMessage{
		{}, pinning(v1alpha1.MCPTool{Name: "s__a", Hash: "1"}, v1alpha1.MCPTool{Name: "s__b", Hash: "1"}), {},
		pinning(v1alpha1.MCPTool{Name: "s__a", Hash: "2"}),
	})
	check.Equal(t, "result", map[string]string{"s__a": "2", "s__b": "1"}, got)
}

func TestOnlyNewlyOfferedToolsArePinned(t *testing.T) {
	offered := map[string]string{"s__c": "3", "s__a": "1", "s__b": "changed"}
	got := mcp.Unpinned(offered, map[string]string{"s__b": "2"})
	check.Equal(t, "result", []v1alpha1.MCPTool{{Name: "s__a", Hash: "1"}, {Name: "s__c", Hash: "3"}}, got)
}

func TestApprovedCallPinsChangedTool(t *testing.T) {
	reply := &v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{
		Generation: &v1alpha1.MessageGeneration{MCP: &v1alpha1.MCPAccount{Changed: []v1alpha1.MCPTool{
			{Name: "s__a", Hash: "2"}, {Name: "s__b", Hash: "2"},
		}}},
	}}
	changed := func(name string) v1alpha1.ToolCall {
		return v1alpha1.ToolCall{Name: name, RequiresAction: v1alpha1.RequiresApproval,
			ApprovalCause: v1alpha1.ApprovalToolChanged}
	}
	a, b := v1alpha1.MCPTool{Name: "s__a", Hash: "2"}, v1alpha1.MCPTool{Name: "s__b", Hash: "2"}
	for name, c := range map[string]struct {
		run  []v1alpha1.ToolCall
		want []v1alpha1.MCPTool
	}{
		"both were approved":             {[]v1alpha1.ToolCall{changed("s__a"), changed("s__b")}, []v1alpha1.MCPTool{a, b}},
		"one was denied":                 {[]v1alpha1.ToolCall{changed("s__b")}, []v1alpha1.MCPTool{b}},
		"another one needed no approval": {[]v1alpha1.ToolCall{{Name: "s__a"}}, []v1alpha1.MCPTool{}},
		"none is run":                    {nil, []v1alpha1.MCPTool{}},
	} {
		check.Equal(t, name, c.want, mcp.Approved(reply, c.run))
	}
}
