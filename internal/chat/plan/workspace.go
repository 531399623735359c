// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// workspaceStarting reports whether the calls that are to be run next need a workspace that is not ready yet, and asks
// how it stands if that is not known.
func workspaceStarting(p *pass) bool {
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
func changeWorkspace(p *pass, change *v1beta1.WorkspaceChange) {
	source, st := p.chat.Spec.Workspace, p.status()
	if change == nil || source == nil {
		return
	}
	decided := v1beta1.ChatWorkspaceStatus{}
	if st.Workspace != nil {
		decided = *st.Workspace
	}
	if change.Create != nil && source.PodTemplateSelector != nil && decided.PodTemplateRef == nil {
		decided.PodTemplateRef = change.Create
	}
	if change.Stop {
		decided.StoppedAt = new(metav1.NewMicroTime(p.facts.Now))
	}
	if decided != (v1beta1.ChatWorkspaceStatus{}) {
		st.Workspace = &decided
	}
}

// refreshContext has what the workspace says about how to work in it read again. It is no transition: it changes what
// comes with the results of the next calls, and waits for none.
func refreshContext(p *pass) (refusal string) {
	if !p.facts.HasWorkspace {
		return "the chat has no workspace whose context could be read again: set spec.workspace of the chat at the top. " +
			"The context is then read with the results of the first calls that work there"
	}
	p.status().Internal.ContextRefreshedVersion = p.status().History.Version
	return ""
}
