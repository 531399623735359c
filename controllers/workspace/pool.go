// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// claimSandbox claims a sandbox of the pool.
func (r *Reconciler) claimSandbox(ctx context.Context, f *life.Facts) error {
	err := r.Access.Ensure(ctx, f.Workspace.Namespace)
	if err == nil {
		f.Pool.Claim, err = create(ctx, r, sandboxClaimOf(f.Workspace), &pools.SandboxClaim{})
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) { // agent-sandbox was removed.
		f.Pool.Installed = false
		return nil
	}
	return noteRefusal(err, life.CreateSandboxClaim, f)
}

// sandboxClaimOf has no fields for the pod: with those, agent-sandbox would not use one that runs already.
func sandboxClaimOf(w *v1alpha1.Workspace) *pools.SandboxClaim {
	return &pools.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: template.Name(w),
			OwnerReferences: []metav1.OwnerReference{owner(w)}},
		Spec: pools.SandboxClaimSpec{
			WarmPoolRef: pools.SandboxWarmPoolRef{Name: w.Spec.Source.WarmPoolRef.Name}},
	}
}

// setMode suspends or resumes the sandbox.
func (r *Reconciler) setMode(ctx context.Context, f *life.Facts, mode sandboxes.SandboxOperatingMode) error {
	sandbox := f.Pool.Sandbox.DeepCopy()
	sandbox.Spec.OperatingMode = mode
	if err := r.Client.Patch(ctx, sandbox, client.MergeFrom(f.Pool.Sandbox)); err != nil {
		return fmt.Errorf("setting operatingMode of Sandbox %s to %s: %w", sandbox.Name, mode, err)
	}
	f.Pool.Sandbox = sandbox
	return nil
}

// AgentSandbox tells whether the cluster has agent-sandbox.
type AgentSandbox interface {
	// Installed reports whether it does. From then on its kinds can be read from the cache.
	Installed() (bool, error)
}

// discovered watches the kinds of agent-sandbox once a workspace needs them and the cluster has them. It is safe for
// concurrent use.
type discovered struct {
	mapper meta.RESTMapper
	watch  func() error

	mu      sync.Mutex
	watched bool
}

// Installed reports whether the cluster has agent-sandbox, whose kinds are watched from then on.
func (d *discovered) Installed() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watched {
		return true, nil
	}
	for _, kind := range []schema.GroupVersionKind{sandboxes.GroupVersion.WithKind("Sandbox"),
		pools.GroupVersion.WithKind("SandboxClaim")} {
		_, err := d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("asking for the kind %s: %w", kind.Kind, err)
		}
	}
	if err := d.watch(); err != nil {
		return false, fmt.Errorf("watching the sandboxes: %w", err)
	}
	d.watched = true
	return true, nil
}
