// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestForkTakesSettingsButNoAccess(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	p.get(p.chat)
	p.chat.Spec.SystemPrompt = "Be brief."
	p.chat.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(600))}
	p.chat.Spec.Workspace = &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}
	p.chat.Spec.MCPServers = []v1beta1.MCPServer{{Name: "docs", URL: "https://docs.example.com"}}
	p.update(p.chat)
	head := p.chat.Status.History.Head
	refused := p.run("fork", "triage", "triage")
	refused.fails("already exists")
	check.Lacks(t, refused.errOut.String(), "not copied")
	p.run("fork", "triage").shows("chat.parley.dev/"+p.created("triage-").Name+" created\n",
		"▎[not copied: workspace]")
	forked := p.created("triage-").Spec
	check.Equal(t, "source", v1beta1.ForkSource{Chat: "triage", Message: head}, *forked.Fork)
	if forked.SystemPrompt != "Be brief." || forked.Workspace != nil || forked.Retention != nil ||
		len(forked.MCPServers) != 1 {
		t.Errorf("the fork has the settings %+v", forked)
	}
	p.run("fork", "triage", "other", "--at", "first", "--workspace", "rust", "--model", "large", "--no-follow",
		"and", "now?").shows("chat.parley.dev/other created\n")
	forked = p.created("other").Spec
	check.Equal(t, "source", v1beta1.ForkSource{Chat: "triage", Message: "first"}, *forked.Fork)
	if forked.Prompt != "and now?" || forked.Workspace.PodTemplateRef.Name != "rust" ||
		forked.ModelConfigRef.Name != "large" {
		t.Errorf("the fork has the settings %+v", forked)
	}
	p.run("fork", "triage", "third", "--at", "unknown").exits(exitNotFound, "unknown")
}

func TestForkCopiesTheWorkspace(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	p.get(p.chat)
	storage := &v1beta1.WorkspaceStorage{Size: "1Gi"}
	p.chat.Spec.Workspace = &v1beta1.WorkspaceSource{PodTemplateSelector: &v1beta1.WorkspaceTemplateSelector{
		Storage: storage}, IdleSeconds: new(int32(60))}
	p.update(p.chat)
	p.run("fork", "triage", "early", "--copy-workspace").exits(exitFailed, "are not in a volume")
	p.chat.Status.Workspace = &v1beta1.ChatWorkspaceStatus{
		PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}
	p.updateStatus(p.chat)
	c := p.run("fork", "triage", "other", "--copy-workspace")
	c.shows("chat.parley.dev/other created\n")
	check.Equal(t, "remarks", "", c.errOut.String())
	forked := p.created("other").Spec
	check.Equal(t, "files", v1beta1.ForkWorkspaceCopy, forked.Fork.Workspace)
	check.Equal(t, "workspace", v1beta1.WorkspaceSource{IdleSeconds: new(int32(60)),
		PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go", Storage: storage}}, *forked.Workspace)
	p.run("fork", "triage", "both", "--copy-workspace", "--workspace", "go").exits(exitUsage, "exclude each other")
}

func TestForkCopiesTheWorkspaceOfItsClass(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	class := &v1beta1.ChatClass{ObjectMeta: p.meta("coder"), Spec: v1beta1.ChatClassSpec{Defaults: v1beta1.ChatSettings{
		Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}}}}
	p.create(class)
	p.get(p.chat)
	p.chat.Status.ChatClass = &v1beta1.AppliedChatClass{Name: "coder", UID: "u", Generation: 1}
	p.chat.Status.Root = &v1beta1.FamilyRoot{Name: "triage", UID: "u", Workspace: "triage"}
	p.updateStatus(p.chat)
	p.run("fork", "triage", "empty").shows("chat.parley.dev/empty created\n",
		"▎[The files of the workspace are not copied: --copy-workspace copies those in a volume, kubectl chat ")
	asAdmin := func(name string) *command {
		return p.start("certificate", "", "fork", "triage", name, "--copy-workspace")
	}
	asAdmin("early").exits(exitFailed, "are not in a volume")
	class.Spec.Defaults.Workspace.PodTemplateRef.Storage = &v1beta1.WorkspaceStorage{}
	p.update(class)
	other := asAdmin("other")
	other.shows("chat.parley.dev/other created\n")
	check.Equal(t, "remarks", "", other.errOut.String())
	if forked := p.created("other").Spec; forked.Workspace != nil || forked.Fork.Workspace != v1beta1.ForkWorkspaceCopy {
		t.Errorf("the fork is %+v with %+v", forked.Fork, forked.Workspace)
	}
}
