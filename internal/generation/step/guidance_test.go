// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// living is a tool that works in a workspace.
func living(name string) *counting {
	return &counting{name: name, Traits: tools.Traits{NeedsWorkspace: true}}
}

// of is a chat with a workspace of that source.
func of(source v1alpha1.WorkspaceSource) func(*v1alpha1.Chat) {
	return func(c *v1alpha1.Chat) {
		c.Spec.Workspace, c.Status.Internal.Attempt.HasWorkspace = &source, true
	}
}

func TestAModelIsToldOfTheWorkspaceThatItsToolsWorkIn(t *testing.T) {
	execute, create := living("execute"), &counting{name: "create_workspace"}
	for name, c := range map[string]struct {
		tools  []tools.Tool
		change func(*v1alpha1.Chat)
		want   []string
	}{
		"its own": {[]tools.Tool{execute, create}, func(c *v1alpha1.Chat) { c.Status.Internal.Attempt.HasWorkspace = true },
			[]string{ownWorkspace + keepsStorage + inWorkspace}},
		"its own, with storage": {[]tools.Tool{execute}, of(v1alpha1.WorkspaceSource{
			PodTemplateRef: &v1alpha1.WorkspaceTemplateReference{Storage: &v1alpha1.WorkspaceStorage{}}}),
			[]string{ownWorkspace + keepsStorage + inWorkspace}},
		"its own, without storage": {[]tools.Tool{execute}, of(v1alpha1.WorkspaceSource{
			PodTemplateRef: &v1alpha1.WorkspaceTemplateReference{}}), []string{ownWorkspace + keepsNothing + inWorkspace}},
		"one that it has chosen, without storage": {[]tools.Tool{execute}, of(v1alpha1.WorkspaceSource{
			PodTemplateSelector: &v1alpha1.WorkspaceTemplateSelector{}}), []string{ownWorkspace + keepsNothing + inWorkspace}},
		"a pod that somebody else runs": {[]tools.Tool{execute}, of(v1alpha1.WorkspaceSource{
			PodRef: &v1alpha1.WorkspacePodReference{}}), []string{ownWorkspace + inWorkspace}},
		"that of its parent": {[]tools.Tool{execute}, func(c *v1alpha1.Chat) {
			c.Status.Internal.Attempt.HasWorkspace, c.Spec.ParentRef = true, &v1alpha1.ChatReference{Name: "p"}
		}, []string{sharedWorkspace}},
		"one whose tools it may not call": {[]tools.Tool{execute}, func(c *v1alpha1.Chat) {
			c.Status.Internal.Attempt.HasWorkspace = true
			c.Spec.Tools = &v1alpha1.ChatTools{Deny: []v1alpha1.ToolPattern{"execute"}}
		}, nil},
		"one that it may create": {[]tools.Tool{execute, create}, func(*v1alpha1.Chat) {}, []string{noWorkspace}},
		"none":                   {[]tools.Tool{execute}, func(*v1alpha1.Chat) {}, nil},
		"one, as the advisor": {[]tools.Tool{execute}, func(c *v1alpha1.Chat) {
			c.Status.Internal.Attempt.HasWorkspace = true
			c.Status.Generation.Action = v1alpha1.ActionExecuteTools
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := performer(c.tools...)
			p.chat.Status.Generation.Action = v1alpha1.ActionGenerateAssistant
			c.change(p.chat)
			if got := guidance(p.chat, p.steps.options.Tools); !slices.Equal(got, c.want) {
				t.Errorf("it is told %q", got)
			}
		})
	}
}
