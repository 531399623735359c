// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChatWorkspaceStatus is what the model has decided about the workspace of its chat.
type ChatWorkspaceStatus struct {
	// podTemplateRef is the template that the model chose, and its parameters. It counts as long as
	// spec.workspace.podTemplateSelector is set.
	// +optional
	PodTemplateRef *WorkspaceTemplateReference `json:"podTemplateRef,omitempty"`

	// stoppedAt is when the model last stopped the workspace. The next call that needs it starts it again.
	// +optional
	StoppedAt *metav1.MicroTime `json:"stoppedAt,omitempty"`
}

// WorkspaceChange is what a step decides about the workspace of its chat.
type WorkspaceChange struct {
	// create names the template that the workspace is to be made from.
	// +optional
	Create *WorkspaceTemplateReference `json:"create,omitempty"`

	// stop is true when the workspace is to be stopped.
	// +optional
	Stop bool `json:"stop,omitempty"`

	// contextRead is true when the parts hold what the workspace says about how to work in it, as files: its AGENTS.md and
	// an index of its skills, if it has them. It is read once, until a summary takes its place, or it is asked for
	// again.
	// +optional
	ContextRead bool `json:"contextRead,omitempty"`
}

// WorkspaceSource is what the workspace of the chat is made from: what its spec names, or what its model chose among
// what that selects. Nil: it has no workspace, or none yet.
func (c *Chat) WorkspaceSource() *WorkspaceSource {
	source := c.Spec.Workspace
	if source == nil || source.PodTemplateSelector == nil {
		return source
	}
	if c.Status.Workspace == nil || c.Status.Workspace.PodTemplateRef == nil {
		return nil
	}
	chosen := source.DeepCopy()
	chosen.PodTemplateRef = c.Status.Workspace.PodTemplateRef.DeepCopy()
	chosen.PodTemplateRef.Storage = chosen.PodTemplateSelector.Storage
	return chosen
}

// WorkspaceStoppedAt is when the model of the chat last stopped its workspace; nil if it never did.
func (c *Chat) WorkspaceStoppedAt() *metav1.MicroTime {
	if c.Status.Workspace == nil {
		return nil
	}
	return c.Status.Workspace.StoppedAt
}

// Labels are those that a PodTemplate has among which the model may choose.
func (s *WorkspaceTemplateSelector) Labels() map[string]string {
	want := make(map[string]string, len(s.MatchLabels)+1)
	for key, value := range s.MatchLabels {
		want[key] = string(value)
	}
	want[LabelWorkspaceTemplate] = "true"
	return want
}
