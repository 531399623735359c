// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// passes reports whether the filter lets the tool of that name through; nil lets all through.
func passes(filter *v1alpha1.MCPToolFilter, name string) bool {
	return filter == nil || (len(filter.Allow) == 0 || toolpolicy.Matches(filter.Allow, name)) &&
		!toolpolicy.Matches(filter.Deny, name)
}
