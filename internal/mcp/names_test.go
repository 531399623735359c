// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"regexp"
	"strings"
	"testing"

	"parley.dev/parley/internal/approval/toolpolicy"
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
		if ServerOf(got) != "s" {
			t.Errorf("%q is a tool of server %q", got, ServerOf(got))
		}
	}
}

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

func TestUnprefixedToolNameHasNoServer(t *testing.T) {
	for _, name := range []string{"execute", "read_file", ""} {
		if got := ServerOf(name); got != "" {
			t.Errorf("%q is a tool of server %q", name, got)
		}
	}
}
