// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// gatherPool reads what the workspace has of its warm pool into the facts.
func (r *Reconciler) gatherPool(ctx context.Context, f *life.Facts) (err error) {
	f.Pool = &life.Pool{}
	if f.Pool.Installed, err = r.Sandboxes.Installed(); err != nil || !f.Pool.Installed {
		return err
	}
	key := client.ObjectKey{Namespace: f.Workspace.Namespace, Name: template.Name(f.Workspace)}
	var claim pools.SandboxClaim
	found, err := r.find(ctx, key, &claim)
	if err != nil || !found {
		return err
	}
	f.Pool.Claim = &claim
	return r.gatherSandbox(ctx, f)
}

// gatherSandbox reads the sandbox that the claim has got, and the pod of that. A claim tells the name alone; the
// sandbox is the workspace's if the claim controls it.
func (r *Reconciler) gatherSandbox(ctx context.Context, f *life.Facts) error {
	key := client.ObjectKey{Namespace: f.Workspace.Namespace, Name: f.Pool.Claim.Status.SandboxStatus.Name}
	if key.Name == "" {
		return nil
	}
	var sandbox sandboxes.Sandbox
	found, err := r.find(ctx, key, &sandbox)
	if err != nil || !found || !metav1.IsControlledBy(&sandbox, f.Pool.Claim) {
		return err
	}
	f.Pool.Sandbox = &sandbox
	name := sandbox.Annotations[sandboxes.SandboxPodNameAnnotation]
	if name == "" {
		name = sandbox.Name
	}
	if err := r.gatherPod(ctx, f, name); err != nil {
		return err
	}
	if f.Pod != nil && !metav1.IsControlledBy(f.Pod, &sandbox) {
		f.Pod = nil
	}
	return nil
}
