// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspaces

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

func TestAPodIsGoneOnceItsWorkspaceSaysSo(t *testing.T) {
	type status = v1alpha1.WorkspaceStatus
	pod, another := &v1alpha1.WorkspacePod{UID: "pod"}, &v1alpha1.WorkspacePod{UID: "another"}
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "workspaces"}, "c")
	for name, c := range map[string]struct {
		status   status
		stranger bool
		err      error
		want     bool
	}{
		"it is the pod":                   {status{Phase: v1alpha1.WorkspacePhaseReady, Pod: pod}, false, nil, false},
		"it does not answer for a moment": {status{Phase: v1alpha1.WorkspacePhaseStarting, Pod: pod}, false, nil, false},
		"it is being removed":             {status{Phase: v1alpha1.WorkspacePhaseStopping, Pod: pod}, false, nil, true},
		"there is another":                {status{Phase: v1alpha1.WorkspacePhaseReady, Pod: another}, false, nil, true},
		"there is none":                   {status{Phase: v1alpha1.WorkspacePhasePending}, false, nil, true},
		"the workspace was stopped":       {status{Phase: v1alpha1.WorkspacePhaseStopped}, false, nil, true},
		"the workspace is gone":           {status{}, false, notFound, true},
		"the workspace is another's":      {status{Phase: v1alpha1.WorkspacePhaseReady, Pod: pod}, true, nil, true},
		"nobody knows":                    {status{}, false, errors.New("the API server does not answer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			root := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "root"}}
			owner := root.DeepCopy()
			if c.stranger {
				owner.UID = "stranger"
			}
			w := New(Options{Workspace: func(_ context.Context, name string) (*v1alpha1.Workspace, error) {
				return &v1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("Chat"))}}, Status: c.status}, c.err
			}})
			check.Equal(t, "gone", c.want, w.gone(t.Context(), root, "pod"))
		})
	}
}
