// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/requeue"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// report writes the status, if it has changed, and says when to look again.
func (r *Reconciler) report(ctx context.Context, w *v1alpha1.Workspace, f *life.Facts, p life.Plan) (ctrl.Result,
	error) {
	result := ctrl.Result{RequeueAfter: p.Deadline()}
	next := w.DeepCopy()
	next.Status.Phase, next.Status.Pod = p.Phase, podStatus(f)
	next.Status.Claim, next.Status.Directory, next.Status.Template = "", "", ""
	if f.Claim != nil {
		next.Status.Claim = f.Claim.Name
	}
	if f.Pod != nil {
		next.Status.Directory = template.DirectoryIn(f.Pod)
		next.Status.Template = f.Pod.Annotations[annotationTemplate]
	}
	conditions.Workspace(next, p.Summary, r.Now())
	if equality.Semantic.DeepEqual(w.Status, next.Status) {
		return result, nil
	}
	err := r.Client.Status().Update(ctx, next)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: requeue.Conflict}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("writing the status of Workspace %s: %w", client.ObjectKeyFromObject(w), err)
	}
	return result, nil
}

func podStatus(f *life.Facts) *v1alpha1.WorkspacePod {
	if f.Pod == nil {
		return nil
	}
	return &v1alpha1.WorkspacePod{Name: f.Pod.Name, UID: string(f.Pod.UID), Address: f.Pod.Status.PodIP}
}
