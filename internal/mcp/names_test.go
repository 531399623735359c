// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"regexp"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/test/kit/check"
)

func TestToolNameDependsOnlyOnServerAndTool(t *testing.T) {
	long := strings.Repeat("a", 70)
	for tool, want := range map[string]string{
		"echo":          `^s__echo$`,
		"get-sum":       `^s__get-sum$`,
		"files.read":    `^s__files_read_[0-9a-f]{8}$`,
		"files/read":    `^s__files_read_[0-9a-f]{8}$`,
		"käse\x1b[31m":  `^s__k_se__31m_[0-9a-f]{8}$`,
		long:            `^s__a{52}_[0-9a-f]{8}$`,
		"echo_0123abcd": `^s__echo_0123abcd_[0-9a-f]{8}$`,
		"":              `^s___[0-9a-f]{8}$`,
	} {
		got := offeredName("s", tool)
		if !regexp.MustCompile(want).MatchString(got) || len(got) > maxName {
			t.Errorf("%q is called %q, want %s", tool, got, want)
		}
		check.Equal(t, "server of "+got, "s", ServerOf(got))
	}
	for _, name := range []string{"execute", "read_file", ""} {
		check.Equal(t, "server of "+name, "", ServerOf(name))
	}
}

// Security (a hostile MCP server): cannot take the name of a tool of another server, or of a built-in one. Also
// TestAddedToolsAreCalledLikeBuiltInTools of internal/tools.
func TestNoTwoToolsShareAName(t *testing.T) {
	tools := []string{"a.b", "a/b", "a_b", "a b", "a", "a__b", "a_", strings.Repeat("x", 90), strings.Repeat("x", 91)}
	for _, tool := range tools[:4] { // What one of them is called is a name that another could have.
		_, whole, _ := strings.Cut(offeredName("s", tool), toolpolicy.ServerSeparator)
		tools = append(tools, whole)
	}
	called := map[string]string{}
	for _, server := range []string{"s", "s-t"} {
		for i, tool := range tools {
			if tool == "a_b" && i > 3 {
				continue // It is called by its own name.
			}
			name := offeredName(server, tool)
			if other, taken := called[name]; taken {
				t.Errorf("%q and %q are both called %q", other, tool, name)
			}
			called[name] = tool
		}
	}
}

func TestFilterPassesAllowedToolsThatAreNotDenied(t *testing.T) {
	type filter = v1beta1.MCPToolFilter
	for name, c := range map[string]struct {
		filter *filter
		tool   string
		want   bool
	}{
		"no filter":               {nil, "any", true},
		"nothing said":            {&filter{}, "any", true},
		"an exact name":           {&filter{Allow: []string{"get"}}, "get", true},
		"no more than the name":   {&filter{Allow: []string{"get"}}, "get_all", false},
		"the beginning of a name": {&filter{Allow: []string{"get_*"}}, "get_all", true},
		"another beginning":       {&filter{Allow: []string{"get_*"}}, "set_all", false},
		"all":                     {&filter{Allow: []string{"*"}}, "any", true},
		"what is denied, also where it is allowed": {&filter{Allow: []string{"*"}, Deny: []string{"del*"}}, "delete", false},
		"what is not denied":                       {&filter{Deny: []string{"del*"}}, "get", true},
	} {
		check.Equal(t, name, c.want, passes(c.filter, c.tool))
	}
}

func TestSecretsAreRemovedFromTexts(t *testing.T) {
	s := newScrubber([]string{"token-0123456789", "token-0123456789-and-more", "short", `quote"d-secret`})
	for text, want := range map[string]string{
		"nothing":                          "nothing",
		"it is token-0123456789.":          "it is [secret].",
		"it is token-0123456789-and-more!": "it is [secret]!",
		"short ones stay":                  "short ones stay",
		`{"key":"quote\"d-secret"}`:        `{"key":"[secret]"}`,
		`plain quote"d-secret`:             "plain [secret]",
	} {
		check.Equal(t, text, want, s.scrub(text))
	}
	check.Equal(t, "without secrets", "as it is", newScrubber(nil).scrub("as it is"))
}
