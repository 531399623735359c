// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// matches reports whether one of the patterns is the name, or a beginning of it with a * behind.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, prefix)
	})
}

// passes reports whether the filter lets the tool of that name through; nil lets all through.
func passes(filter *v1alpha1.MCPToolFilter, name string) bool {
	return filter == nil || (len(filter.Allow) == 0 || matches(filter.Allow, name)) && !matches(filter.Deny, name)
}
