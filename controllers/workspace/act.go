// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

const (
	// annotationName on a claim names its workspace.
	annotationName = "parley.dev/workspace"
	// annotationTemplate on a pod is the hash of its spec.
	annotationTemplate = "parley.dev/template"
)

// act performs an act, and updates the facts.
func (r *Reconciler) act(ctx context.Context, act life.Act, f *life.Facts, o *template.Objects) error {
	switch act {
	case life.CreateClaim:
		var err error
		f.Claim, err = create(ctx, r, claimOf(f.Workspace, o), &corev1.PersistentVolumeClaim{})
		return noteRefusal(err, act, f)
	case life.OwnClaim:
		return r.ownClaim(ctx, f)
	case life.CreatePod:
		err := r.Access.Ensure(ctx, f.Workspace.Namespace)
		if err == nil {
			f.Pod, err = create(ctx, r, podOf(f.Workspace, o), &corev1.Pod{})
		}
		return noteRefusal(err, act, f)
	case life.RemovePod:
		return r.removePod(ctx, f)
	case life.ForcePod:
		return r.removePod(ctx, f, client.GracePeriodSeconds(0))
	case life.CreateSandboxClaim:
		return r.claimSandbox(ctx, f)
	case life.SuspendSandbox:
		return r.setMode(ctx, f, sandboxes.SandboxOperatingModeSuspended)
	case life.ResumeSandbox:
		return r.setMode(ctx, f, sandboxes.SandboxOperatingModeRunning)
	}
	return nil
}

// create creates an object. If the cache missed one of its name, it reads that into an empty object, and returns it.
func create[T client.Object](ctx context.Context, r *Reconciler, o, there T) (none T, err error) {
	err = r.Client.Create(ctx, o)
	switch {
	case err == nil:
		return o, nil
	case !apierrors.IsAlreadyExists(err):
		return none, fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil {
		return none, fmt.Errorf("reading %T %s: %w", o, o.GetName(), err)
	}
	return there, nil
}

// noteRefusal puts a refusal of the API server into the facts. It returns any other error.
func noteRefusal(err error, act life.Act, f *life.Facts) error {
	words := denial.Of(err, template.Name(f.Workspace))
	if words == "" {
		return err
	}
	f.Refused, f.RefusedAct = words, act
	return nil
}

func (r *Reconciler) removePod(ctx context.Context, f *life.Facts, opts ...client.DeleteOption) error {
	uid := f.Pod.UID
	err := r.Client.Delete(ctx, f.Pod, append(opts, client.Preconditions{UID: &uid})...)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing pod %s: %w", f.Pod.Name, err)
	}
	var pod corev1.Pod
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(f.Pod), &pod)
	switch {
	case apierrors.IsNotFound(err) || err == nil && pod.UID != uid:
		f.Pod = nil
	case err != nil:
		return fmt.Errorf("reading pod %s: %w", f.Pod.Name, err)
	default:
		f.Pod = &pod
	}
	return nil
}

func podOf(w *v1beta1.Workspace, o *template.Objects) *corev1.Pod {
	pod := o.Pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationTemplate] = o.Hash()
	pod.Annotations[life.AnnotationGeneration] = strconv.FormatInt(w.Generation, 10)
	pod.OwnerReferences = []metav1.OwnerReference{owner(w)}
	return pod
}

func claimOf(w *v1beta1.Workspace, o *template.Objects) *corev1.PersistentVolumeClaim {
	claim := o.Claim.DeepCopy()
	claim.Annotations = map[string]string{life.AnnotationWorkspace: string(w.UID), annotationName: w.Name}
	claim.OwnerReferences = ownersOfClaim(w, w.Spec.Source.DeletionPolicy == v1beta1.WorkspaceRetain)
	return claim
}

// ownersOfClaim are the owners of a claim: a retained one has none.
func ownersOfClaim(w *v1beta1.Workspace, retain bool) []metav1.OwnerReference {
	if retain {
		return nil
	}
	return []metav1.OwnerReference{owner(w)}
}

// ownClaim makes the workspace the owner of its claim, or removes the owner.
func (r *Reconciler) ownClaim(ctx context.Context, f *life.Facts) error {
	claim := f.Claim.DeepCopy()
	claim.OwnerReferences = ownersOfClaim(f.Workspace, *f.Retain)
	from := client.MergeFromWithOptions(f.Claim, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, claim, from); err != nil {
		return fmt.Errorf("setting the owner of PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	f.Claim = claim
	return nil
}

func owner(w *v1beta1.Workspace) metav1.OwnerReference {
	return *metav1.NewControllerRef(w, v1beta1.GroupVersion.WithKind("Workspace"))
}

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
func sandboxClaimOf(w *v1beta1.Workspace) *pools.SandboxClaim {
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
