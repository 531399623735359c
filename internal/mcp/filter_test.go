// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

func TestFilterPassesAllowedToolsThatAreNotDenied(t *testing.T) {
	type filter = v1alpha1.MCPToolFilter
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
		if got := passes(c.filter, c.tool); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
