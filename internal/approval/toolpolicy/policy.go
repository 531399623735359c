// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolpolicy tells which tools a policy lets models call, and which of their calls people have to approve. It
// is pure.
package toolpolicy

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// ServerSeparator stands between the name of an MCP server and that of its tool. Names of servers have no underscore,
// so that the first one separates.
const ServerSeparator = "__"

// Allows reports whether the tool of that name may be called. A chat that says nothing of tools may call all.
func Allows(t *v1alpha1.ChatTools, name string) bool {
	return t == nil || (len(t.Allow) == 0 || Matches(t.Allow, name)) && !Matches(t.Deny, name)
}

// Names reports whether the policy allows the tool by its whole name.
func Names(t *v1alpha1.ChatTools, name string) bool {
	return t != nil && slices.Contains(t.Allow, v1alpha1.ToolPattern(name)) && Allows(t, name)
}

// NeedsApproval reports whether a person has to approve calls of the tool of that name.
func NeedsApproval(t *v1alpha1.ChatTools, name string) bool {
	return t != nil && Matches(t.Approval, name)
}

// Matches reports whether one of the patterns is the name, or a beginning of it with a * behind.
func Matches[P ~string](patterns []P, name string) bool {
	return slices.ContainsFunc(patterns, func(p P) bool {
		return covers(v1alpha1.ToolPattern(p), v1alpha1.ToolPattern(name))
	})
}

// Within is the policy within the bounds of another one: what both allow, what one of them denies, and what one of them
// gives to approval.
func Within(own, bounds v1alpha1.ToolPolicy) v1alpha1.ToolPolicy {
	within := v1alpha1.ToolPolicy{
		Allow: own.Allow, Deny: union(own.Deny, bounds.Deny), Approval: union(own.Approval, bounds.Approval),
	}
	switch {
	case len(bounds.Allow) == 0:
	case len(own.Allow) == 0:
		within.Allow = bounds.Allow
	default:
		if within.Allow = common(own.Allow, bounds.Allow); len(within.Allow) == 0 {
			within.Deny = union(within.Deny, []v1alpha1.ToolPattern{"*"}) // An empty list would allow all.
		}
	}
	return within
}

// common are the patterns for what patterns of both lists match.
func common(a, b []v1alpha1.ToolPattern) (both []v1alpha1.ToolPattern) {
	for _, p := range a {
		for _, q := range b {
			// Two patterns either have nothing in common, or one is within the other.
			if narrow, ok := narrower(p, q); ok && !slices.Contains(both, narrow) {
				both = append(both, narrow)
			}
		}
	}
	return both
}

// narrower is the one of the patterns that the other one covers, if that is so.
func narrower(p, q v1alpha1.ToolPattern) (v1alpha1.ToolPattern, bool) {
	switch {
	case covers(q, p):
		return p, true
	case covers(p, q):
		return q, true
	}
	return "", false
}

// covers reports whether all that narrow matches is matched by wide.
func covers(wide, narrow v1alpha1.ToolPattern) bool {
	prefix, open := strings.CutSuffix(string(wide), "*")
	if !open {
		return wide == narrow
	}
	return strings.HasPrefix(strings.TrimSuffix(string(narrow), "*"), prefix)
}

func union(a, b []v1alpha1.ToolPattern) []v1alpha1.ToolPattern {
	all := slices.Clip(a)
	for _, p := range b {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
