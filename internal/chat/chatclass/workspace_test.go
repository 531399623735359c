// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/chat/chatclass"
)

func restricted(r v1beta1.ChatRestrictions) *v1beta1.ChatClass {
	return &v1beta1.ChatClass{ObjectMeta: metav1.ObjectMeta{Name: "coder"},
		Spec: v1beta1.ChatClassSpec{Restrictions: &r}}
}

// Security (a tool that asks people): cannot bypass the rules of a class by a sub-chat of another class in the same
// workspace. Also TestSubChatKeepsTheRulesOfTheWorkspace of internal/generation/runner.
func TestWorkspaceToolsFollowRulesOfBothClasses(t *testing.T) {
	tools := []string{"execute", "read_file", "write_file"}
	rules := func(p v1beta1.ToolPolicy) *v1beta1.ChatClass {
		return restricted(v1beta1.ChatRestrictions{Tools: &p})
	}
	type list = []v1beta1.ToolPattern
	own := &v1beta1.ChatTools{ToolPolicy: v1beta1.ToolPolicy{Allow: list{"*"}, Approval: list{"read_file"}}}
	for name, c := range map[string]struct {
		own             *v1beta1.ChatTools
		class           *v1beta1.ChatClass
		denied, decided string
	}{
		"no class":                {own, nil, "", "read_file"},
		"a class without rules":   {own, &v1beta1.ChatClass{}, "", "read_file"},
		"a tool denied":           {own, rules(v1beta1.ToolPolicy{Deny: list{"exec*"}}), "execute", "read_file"},
		"a tool given to people":  {own, rules(v1beta1.ToolPolicy{Approval: list{"execute"}}), "", "execute read_file"},
		"a list of tools":         {own, rules(v1beta1.ToolPolicy{Allow: list{"read_file"}}), "execute write_file", "read_file"},
		"a chat without a policy": {nil, rules(v1beta1.ToolPolicy{Deny: list{"*"}}), "execute read_file write_file", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := chatclass.WithinWorkspace(c.own, c.class, tools)
			var denied, decided []string
			for _, tool := range tools {
				if !toolpolicy.Allows(got, tool) {
					denied = append(denied, tool)
				}
				if toolpolicy.NeedsApproval(got, tool) {
					decided = append(decided, tool)
				}
			}
			if strings.Join(denied, " ") != c.denied || strings.Join(decided, " ") != c.decided {
				t.Errorf("denied are %v, and people decide about %v", denied, decided)
			}
			if !toolpolicy.Allows(got, "current_time") {
				t.Error("a tool that works elsewhere is denied")
			}
		})
	}
	if got := chatclass.WithoutWorkspace(own, tools); toolpolicy.Allows(got, "execute") || !toolpolicy.Allows(got, "x") {
		t.Errorf("without rules the policy is %+v", got)
	}
}

func TestCommandsAreRefusedWhereClassRestrictsServers(t *testing.T) {
	if got := chatclass.CommandsRefused("root", restricted(v1beta1.ChatRestrictions{})); got != "" {
		t.Errorf("refused: %s", got)
	}
	got := chatclass.CommandsRefused("root", restricted(v1beta1.ChatRestrictions{
		Fields: []v1beta1.ChatField{v1beta1.FieldMCPServers}}))
	if !strings.Contains(got, "belongs to chat root, and its ChatClass coder") {
		t.Errorf("refused: %s", got)
	}
}

// Security (a tool that asks people): cannot bypass the rules for an MCP server of its class by another name for its
// address; it can by another address of the server.
func TestRulesForAServerHoldForItsAddress(t *testing.T) {
	class := &v1beta1.ChatClassSpec{
		Defaults: v1beta1.ChatSettings{MCPServers: []v1beta1.MCPServer{
			{Name: "tracker", URL: "https://tracker.example.com/mcp"},
			{Name: "wiki", ServerRef: &v1beta1.MCPServerReference{Kind: "Service", Name: "wiki", Port: new(int32(8080))}}, {Name: "files", Command: []string{"files", "/"}}}},
		Restrictions: &v1beta1.ChatRestrictions{Tools: &v1beta1.ToolPolicy{
			Approval: []v1beta1.ToolPattern{"tracker__*", "wiki__edit"}, Deny: []v1beta1.ToolPattern{"tracker__delete*", "fil*"}}},
	}
	for name, c := range map[string]struct {
		server         v1beta1.MCPServer
		deny, approval []v1beta1.ToolPattern
	}{
		"the same URL": {v1beta1.MCPServer{Name: "other", URL: "https://tracker.example.com/mcp"},
			[]v1beta1.ToolPattern{"other__delete*"}, []v1beta1.ToolPattern{"other__*"}},
		"the same URL in another form": {v1beta1.MCPServer{Name: "other", URL: "HTTPS://Tracker.Example.com.:443//mcp/?a=b"},
			[]v1beta1.ToolPattern{"other__delete*"}, []v1beta1.ToolPattern{"other__*"}},
		"the same reference": {v1beta1.MCPServer{Name: "other", ServerRef: &v1beta1.MCPServerReference{Kind: "Service",
			Name: "wiki", Port: new(int32(8080))}}, nil, []v1beta1.ToolPattern{"other__edit"}},
		"the same reference with its defaults": {v1beta1.MCPServer{Name: "other", ServerRef: &v1beta1.MCPServerReference{
			Kind: "Service", Name: "wiki", Path: "/mcp?"}}, nil, []v1beta1.ToolPattern{"other__edit"}},
		"another port": {v1beta1.MCPServer{Name: "other", ServerRef: &v1beta1.MCPServerReference{Kind: "Service",
			Name: "wiki", Port: new(int32(1))}}, nil, nil},
		"the same command": {v1beta1.MCPServer{Name: "other", Command: []string{"files", "/"}},
			[]v1beta1.ToolPattern{"other__*"}, nil},
		"another path":   {v1beta1.MCPServer{Name: "other", URL: "https://tracker.example.com/v2"}, nil, nil},
		"another server": {v1beta1.MCPServer{Name: "other", URL: "https://example.com/mcp"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1beta1.ChatSettings{MCPServers: []v1beta1.MCPServer{c.server}}
			got, _ := chatclass.Apply(chat, class)
			rules := class.Restrictions.Tools
			want := v1beta1.ToolPolicy{Deny: append(append([]v1beta1.ToolPattern(nil), rules.Deny...), c.deny...),
				Approval: append(append([]v1beta1.ToolPattern(nil), rules.Approval...), c.approval...)}
			if diff := cmp.Diff(want, got.Tools.ToolPolicy); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
