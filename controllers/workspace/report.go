// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// report writes the status, if it has changed, and says when to look again.
func (r *Reconciler) report(ctx context.Context, w *v1alpha1.Workspace, f *life.Facts, p life.Plan) (ctrl.Result,
	error) {
	result := ctrl.Result{RequeueAfter: p.Deadline()}
	next := w.DeepCopy()
	next.Status.Phase = p.Phase
	next.Status.Pod, next.Status.Claim, next.Status.Directory, next.Status.Template = nil, "", "", ""
	next.Status.Sandbox = ""
	if f.Pool != nil && f.Pool.Sandbox != nil {
		next.Status.Sandbox = f.Pool.Sandbox.Name
	}
	if f.OwnsClaim() {
		next.Status.Claim = f.Claim.Name
	}
	if pod := f.Pod; f.Names() {
		next.Status.Pod = &v1alpha1.WorkspacePod{Name: pod.Name, UID: string(pod.UID), Address: pod.Status.PodIP}
		next.Status.Directory = template.DirectoryIn(pod)
		next.Status.Template = pod.Annotations[annotationTemplate]
	}
	conditions.Workspace(next, p.Summary, r.Now())
	written, err := requeue.Status(ctx, r.Client, w, next)
	if err != nil || written.RequeueAfter > 0 {
		return written, err
	}
	return result, nil
}
