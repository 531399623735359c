// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/chat/chatclass"
)

func restricted(r v1alpha1.ChatRestrictions) *v1alpha1.ChatClass {
	return &v1alpha1.ChatClass{ObjectMeta: metav1.ObjectMeta{Name: "coder"},
		Spec: v1alpha1.ChatClassSpec{Restrictions: &r}}
}

func TestWorkspaceToolsFollowRulesOfBothClasses(t *testing.T) {
	tools := []string{"execute", "read_file", "write_file"}
	rules := func(p v1alpha1.ToolPolicy) *v1alpha1.ChatClass {
		return restricted(v1alpha1.ChatRestrictions{Tools: &p})
	}
	type list = []v1alpha1.ToolPattern
	own := &v1alpha1.ChatTools{ToolPolicy: v1alpha1.ToolPolicy{Allow: list{"*"}, Approval: list{"read_file"}}}
	for name, c := range map[string]struct {
		own             *v1alpha1.ChatTools
		class           *v1alpha1.ChatClass
		denied, decided string
	}{
		"no class":                {own, nil, "", "read_file"},
		"a class without rules":   {own, &v1alpha1.ChatClass{}, "", "read_file"},
		"a tool denied":           {own, rules(v1alpha1.ToolPolicy{Deny: list{"exec*"}}), "execute", "read_file"},
		"a tool given to people":  {own, rules(v1alpha1.ToolPolicy{Approval: list{"execute"}}), "", "execute read_file"},
		"a list of tools":         {own, rules(v1alpha1.ToolPolicy{Allow: list{"read_file"}}), "execute write_file", "read_file"},
		"a chat without a policy": {nil, rules(v1alpha1.ToolPolicy{Deny: list{"*"}}), "execute read_file write_file", ""},
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
	if got := chatclass.CommandsRefused("root", restricted(v1alpha1.ChatRestrictions{})); got != "" {
		t.Errorf("refused: %s", got)
	}
	got := chatclass.CommandsRefused("root", restricted(v1alpha1.ChatRestrictions{
		Fields: []v1alpha1.ChatField{v1alpha1.FieldMCPServers}}))
	if !strings.Contains(got, "belongs to chat root, and its ChatClass coder") {
		t.Errorf("refused: %s", got)
	}
}

func TestRulesForAServerHoldForItsAddress(t *testing.T) {
	class := &v1alpha1.ChatClassSpec{
		Defaults: v1alpha1.ChatSettings{MCPServers: []v1alpha1.MCPServer{
			{Name: "tracker", URL: "https://tracker.example.com/mcp"},
			{Name: "wiki", ServerRef: &v1alpha1.MCPServerReference{Kind: "Service", Name: "wiki", Port: new(int32(8080))}}, {Name: "files", Command: []string{"files", "/"}}}},
		Restrictions: &v1alpha1.ChatRestrictions{Tools: &v1alpha1.ToolPolicy{
			Approval: []v1alpha1.ToolPattern{"tracker__*", "wiki__edit"}, Deny: []v1alpha1.ToolPattern{"tracker__delete*", "fil*"}}},
	}
	for name, c := range map[string]struct {
		server         v1alpha1.MCPServer
		deny, approval []v1alpha1.ToolPattern
	}{
		"the same URL": {v1alpha1.MCPServer{Name: "other", URL: "https://tracker.example.com/mcp"},
			[]v1alpha1.ToolPattern{"other__delete*"}, []v1alpha1.ToolPattern{"other__*"}},
		"the same URL in another form": {v1alpha1.MCPServer{Name: "other", URL: "HTTPS://Tracker.Example.com.:443//mcp/?a=b"},
			[]v1alpha1.ToolPattern{"other__delete*"}, []v1alpha1.ToolPattern{"other__*"}},
		"the same reference": {v1alpha1.MCPServer{Name: "other", ServerRef: &v1alpha1.MCPServerReference{Kind: "Service",
			Name: "wiki", Port: new(int32(8080))}}, nil, []v1alpha1.ToolPattern{"other__edit"}},
		"the same reference with its defaults": {v1alpha1.MCPServer{Name: "other", ServerRef: &v1alpha1.MCPServerReference{
			Kind: "Service", Name: "wiki", Path: "/mcp?"}}, nil, []v1alpha1.ToolPattern{"other__edit"}},
		"another port": {v1alpha1.MCPServer{Name: "other", ServerRef: &v1alpha1.MCPServerReference{Kind: "Service",
			Name: "wiki", Port: new(int32(1))}}, nil, nil},
		"the same command": {v1alpha1.MCPServer{Name: "other", Command: []string{"files", "/"}},
			[]v1alpha1.ToolPattern{"other__*"}, nil},
		"another path":   {v1alpha1.MCPServer{Name: "other", URL: "https://tracker.example.com/v2"}, nil, nil},
		"another server": {v1alpha1.MCPServer{Name: "other", URL: "https://example.com/mcp"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1alpha1.ChatSettings{MCPServers: []v1alpha1.MCPServer{c.server}}
			got, _ := chatclass.Apply(chat, class)
			rules := class.Restrictions.Tools
			want := v1alpha1.ToolPolicy{Deny: append(append([]v1alpha1.ToolPattern(nil), rules.Deny...), c.deny...),
				Approval: append(append([]v1alpha1.ToolPattern(nil), rules.Approval...), c.approval...)}
			if diff := cmp.Diff(want, got.Tools.ToolPolicy); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
