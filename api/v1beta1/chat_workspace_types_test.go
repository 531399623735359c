// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorkspaceSourceComesFromSpecOrModelChoice(t *testing.T) {
	template := func(name string, storage *WorkspaceStorage) *WorkspaceTemplateReference {
		return &WorkspaceTemplateReference{Name: name, Storage: storage}
	}
	large := &WorkspaceStorage{Size: "9Gi"}
	named := &WorkspaceSource{PodTemplateRef: template("go", nil)}
	selector := &WorkspaceSource{IdleSeconds: new(int32(60)),
		PodTemplateSelector: &WorkspaceTemplateSelector{MatchLabels: map[string]LabelValue{"a": "b"}, Storage: large}}
	chosen := selector.DeepCopy()
	chosen.PodTemplateRef = template("rust", large)
	for name, c := range map[string]struct {
		spec *WorkspaceSource
		made *ChatWorkspaceStatus
		want *WorkspaceSource
	}{
		"neither":                  {nil, nil, nil},
		"it names one":             {named, nil, named},
		"whatever the model chose": {named, &ChatWorkspaceStatus{PodTemplateRef: template("rust", nil)}, named},
		"the model has not chosen": {selector, &ChatWorkspaceStatus{}, nil},
		"the model has chosen":     {selector, &ChatWorkspaceStatus{PodTemplateRef: template("rust", nil)}, chosen},
		"it cannot choose the storage": {selector, &ChatWorkspaceStatus{
			PodTemplateRef: template("rust", &WorkspaceStorage{Size: "1Pi"})}, chosen},
		"a choice that nobody allows": {nil, &ChatWorkspaceStatus{PodTemplateRef: template("rust", nil)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &Chat{Spec: ChatSpec{Workspace: c.spec}, Status: ChatStatus{Workspace: c.made}}
			if diff := cmp.Diff(c.want, chat.WorkspaceSource()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
