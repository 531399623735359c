// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package toolpolicy_test

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/test/kit/check"
)

// patterns are those between the blanks.
func patterns(of string) (all []v1beta1.ToolPattern) {
	for p := range strings.FieldsSeq(of) {
		all = append(all, v1beta1.ToolPattern(p))
	}
	return all
}

func policy(allow, deny, approval string) v1beta1.ToolPolicy {
	return v1beta1.ToolPolicy{Allow: patterns(allow), Deny: patterns(deny), Approval: patterns(approval)}
}

func TestToolIsAllowedUnlessDeniedOrNotMatched(t *testing.T) {
	for _, c := range []struct {
		allow, deny, name string
		want              bool
	}{
		{"", "", "read_file", true},
		{"read_file", "", "read_file", true},
		{"read_file", "", "read_file_2", false},
		{"read_*", "", "read_file", true},
		{"read_*", "", "read_", true},
		{"read_*", "", "write_file", false},
		{"*", "", "github__merge", true},
		{"github__*", "github__merge", "github__merge", false},
		{"github__*", "github__merge", "github__list", true},
		{"", "*", "read_file", false},
		{"read_file", "read_*", "read_file", false},
		{"read_file write_file", "", "write_file", true},
	} {
		tools := &v1beta1.ChatTools{ToolPolicy: policy(c.allow, c.deny, "")}
		check.Equal(t, "result", c.want, toolpolicy.Allows(tools, c.name))
	}
	if !toolpolicy.Allows(nil, "x") {
		t.Error("a chat that says nothing of tools may call none")
	}
}

func TestNamesRequiresExactAllowedToolName(t *testing.T) {
	tools := &v1beta1.ChatTools{ToolPolicy: policy("wait_agent read_*", "", "")}
	if !toolpolicy.Names(tools, "wait_agent") || toolpolicy.Names(tools, "read_file") ||
		toolpolicy.Names(nil, "wait_agent") {
		t.Error("another tool is named than wait_agent")
	}
	if tools.Deny = patterns("wait_*"); toolpolicy.Names(tools, "wait_agent") {
		t.Error("a tool that is denied is named")
	}
}

func TestMatchingApprovalPatternRequiresApproval(t *testing.T) {
	tools := &v1beta1.ChatTools{ToolPolicy: policy("", "", "execute k8s_*")}
	for name, want := range map[string]bool{"execute": true, "k8s_apply": true, "read_file": false} {
		check.Equal(t, name, want, toolpolicy.NeedsApproval(tools, name))
	}
	if toolpolicy.NeedsApproval(nil, "execute") {
		t.Error("calls of a chat that says nothing of tools need approval")
	}
}

func TestAPolicyStaysWithinItsBounds(t *testing.T) {
	for name, c := range map[string]struct{ own, bounds, want v1beta1.ToolPolicy }{
		"neither says anything": {},
		"only one says something": {
			policy("a", "b", "c"), policy("", "", ""), policy("a", "b", "c")},
		"only the bounds do": {
			policy("", "", ""), policy("a", "b", "c"), policy("a", "b", "c")},
		"what one denies or gives to approval counts": {
			policy("", "a b", "x"), policy("", "b c", "x y"), policy("", "a b c", "x y")},
		"a name within a pattern": {policy("github__list", "", ""), policy("github__*", "", ""),
			policy("github__list", "", "")},
		"a pattern within a pattern": {policy("*", "", ""), policy("github__* read_*", "", ""),
			policy("github__* read_*", "", "")},
		"one pattern of each": {policy("read_* execute", "", ""), policy("read_file execute", "", ""),
			policy("read_file execute", "", "")},
		"nothing in common allows nothing": {policy("execute", "", ""), policy("read_*", "", ""), policy("", "*", "")},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "result", c.want, toolpolicy.Within(c.own, c.bounds))
		})
	}
}

func FuzzNothingIsAllowedThatTheBoundsForbid(f *testing.F) {
	f.Add("read_* a", "b*", "read_file a*", "read_x", "read_file")
	f.Fuzz(func(t *testing.T, own, denied, bounds, forbidden, name string) {
		if strings.Contains(name, "*") {
			t.Skip("no tool has such a name")
		}
		mine, most := policy(own, denied, ""), policy(bounds, forbidden, "")
		within := &v1beta1.ChatTools{ToolPolicy: toolpolicy.Within(mine, most)}
		want := toolpolicy.Allows(&v1beta1.ChatTools{ToolPolicy: mine}, name) &&
			toolpolicy.Allows(&v1beta1.ChatTools{ToolPolicy: most}, name)
		check.Equal(t, "result", want, toolpolicy.Allows(within, name))
	})
}
