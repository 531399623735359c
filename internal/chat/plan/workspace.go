// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// workspaceStarting reports whether the calls that are to be run next need a workspace that is not ready yet, and asks
// how it stands if that is not known.
func (p turn) workspaceStarting() bool {
	st := p.status()
	if in := &st.Internal.Turn; !in.NeedsWorkspace || in.PendingCalls == 0 {
		return false
	}
	if p.facts.Workspace == nil {
		p.plan.Asks.Workspace = true
		return false
	}
	return p.facts.Workspace.Starting != ""
}
