// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolpolicy determines which tools models may call, and which calls people have to approve. It is pure.
package toolpolicy

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// ServerSeparator separates the name of an MCP server from that of its tool. Names of servers have no underscore.
const ServerSeparator = "__"

// Allows reports whether the tool of that name may be called. nil allows all.
func Allows(t *v1beta1.ChatTools, name string) bool {
	return t == nil || (len(t.Allow) == 0 || Matches(t.Allow, name)) && !Matches(t.Deny, name)
}

// Names reports whether the policy allows the tool by its whole name.
func Names(t *v1beta1.ChatTools, name string) bool {
	return t != nil && slices.Contains(t.Allow, v1beta1.ToolPattern(name)) && Allows(t, name)
}

// NeedsApproval reports whether a person has to approve calls of the tool of that name.
func NeedsApproval(t *v1beta1.ChatTools, name string) bool {
	return t != nil && Matches(t.Approval, name)
}

// Matches reports whether one of the patterns is the name, or a prefix of it with a * at the end.
func Matches[P ~string](patterns []P, name string) bool {
	return slices.ContainsFunc(patterns, func(p P) bool {
		return covers(v1beta1.ToolPattern(p), v1beta1.ToolPattern(name))
	})
}

// Within limits a policy by another one: tools that both allow, that one denies, and that one requires approval for.
func Within(own, bounds v1beta1.ToolPolicy) v1beta1.ToolPolicy {
	within := v1beta1.ToolPolicy{
		Allow: own.Allow, Deny: union(own.Deny, bounds.Deny), Approval: union(own.Approval, bounds.Approval),
	}
	switch {
	case len(bounds.Allow) == 0:
	case len(own.Allow) == 0:
		within.Allow = bounds.Allow
	default:
		if within.Allow = intersect(own.Allow, bounds.Allow); len(within.Allow) == 0 {
			within.Deny = union(within.Deny, []v1beta1.ToolPattern{"*"}) // An empty list would allow all.
		}
	}
	return within
}

// intersect returns the patterns for what patterns of both lists match.
func intersect(a, b []v1beta1.ToolPattern) (both []v1beta1.ToolPattern) {
	for _, p := range a {
		for _, q := range b {
			switch { // Two patterns either have nothing in common, or one covers the other.
			case covers(q, p):
				both = union(both, []v1beta1.ToolPattern{p})
			case covers(p, q):
				both = union(both, []v1beta1.ToolPattern{q})
			}
		}
	}
	return both
}

// covers reports whether wide matches all that narrow matches.
func covers(wide, narrow v1beta1.ToolPattern) bool {
	prefix, open := strings.CutSuffix(string(wide), "*")
	if !open {
		return wide == narrow
	}
	return strings.HasPrefix(strings.TrimSuffix(string(narrow), "*"), prefix)
}

func union(a, b []v1beta1.ToolPattern) []v1beta1.ToolPattern {
	all := slices.Clip(a)
	for _, p := range b {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
