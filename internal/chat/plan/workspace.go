// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

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

// changeWorkspace notes what the results of a step decide about the workspace of the chat. A chat that is not to choose
// gets no other template, and one that has chosen keeps it.
func (p attempt) changeWorkspace(change *v1alpha1.WorkspaceChange) {
	source, st := p.chat.Spec.Workspace, p.status()
	if change == nil || source == nil {
		return
	}
	decided := v1alpha1.ChatWorkspaceStatus{}
	if st.Workspace != nil {
		decided = *st.Workspace
	}
	if change.Create != nil && source.PodTemplateSelector != nil && decided.PodTemplateRef == nil {
		decided.PodTemplateRef = change.Create
	}
	if change.Stop {
		decided.StoppedAt = new(metav1.NewMicroTime(p.facts.Now))
	}
	if decided != (v1alpha1.ChatWorkspaceStatus{}) {
		st.Workspace = &decided
	}
}
