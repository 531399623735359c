// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatquota tells the gate that chats pass before they generate what ChatQuotas and the ClusterChatQuota say,
// and says in their conditions that they are in force: only after the gate knows them. A status is written when a quota
// changes, and never because of what chats do.
package chatquota

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/capacity"
)

// Reconciler keeps the gate's limits to what the quotas say.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Gate whose limits only this Reconciler sets.
	Gate *capacity.Gate
	// Owns reports whether the status of a namespace's quotas is this manager's to write, and with an empty namespace
	// that of the ClusterChatQuota. The gate gets the limits of all quotas.
	Owns func(namespace string) bool
	// Now returns the current time.
	Now func() time.Time

	// setting is held from reading quotas until the gate knows them, so that no older view replaces a newer one.
	setting sync.Mutex
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	// Which quota decides may have changed, or the defaults for what quotas leave open.
	all := handler.EnqueueRequestsFromMapFunc(requeue.Siblings(r.Client, &v1beta1.ChatQuotaList{}, nil))
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("chatquota").
		For(&v1beta1.ChatQuota{}, changed).
		Watches(&v1beta1.ChatQuota{}, all, changed).
		Watches(&v1beta1.ClusterChatQuota{}, &handler.EnqueueRequestForObject{}, changed).
		Watches(&v1beta1.ClusterChatQuota{}, all, changed).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(r))
}

// Load tells the gate what all quotas say. It waits until the cache knows them.
func (r *Reconciler) Load(ctx context.Context) error {
	r.setting.Lock()
	defer r.setting.Unlock()
	if _, err := r.setCluster(ctx); err != nil {
		return err
	}
	var all v1beta1.ChatQuotaList
	if err := r.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("listing ChatQuotas: %w", err)
	}
	namespaces := map[string][]v1beta1.ChatQuota{}
	for i := range all.Items {
		ns := all.Items[i].Namespace
		namespaces[ns] = append(namespaces[ns], all.Items[i])
	}
	for ns, quotas := range namespaces {
		r.Gate.SetNamespace(ns, capacity.OfNamespace(quotas))
	}
	return nil
}

// setCluster tells the gate what the ClusterChatQuota says, and returns that;
// nil: there is none. The caller holds setting.
func (r *Reconciler) setCluster(ctx context.Context) (*v1beta1.ClusterChatQuota, error) {
	quota := &v1beta1.ClusterChatQuota{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: v1beta1.ClusterChatQuotaName}, quota)
	if apierrors.IsNotFound(err) {
		quota = nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the ClusterChatQuota: %w", err)
	}
	r.Gate.SetCluster(capacity.OfCluster(quota))
	return quota, nil
}

// Reconcile puts a quota in force: a ChatQuota, or the ClusterChatQuota if the request names no namespace.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Namespace == "" {
		return r.reconcileCluster(ctx)
	}
	cluster, all, err := r.setNamespace(ctx, req.Namespace)
	if err != nil || !r.Owns(req.Namespace) {
		return ctrl.Result{}, err
	}
	var quota v1beta1.ChatQuota
	if err := r.Client.Get(ctx, req.NamespacedName, &quota); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	next, own := quota.DeepCopy(), capacity.OfNamespace(all)
	conditions.ChatQuota(next, all, own, own.Or(cluster.Namespace), r.Now())
	return requeue.Status(ctx, r.Client, &quota, next)
}

// setNamespace tells the gate what the namespace's ChatQuotas say. It returns them.
func (r *Reconciler) setNamespace(ctx context.Context, ns string) (cluster capacity.ClusterLimits,
	own []v1beta1.ChatQuota, err error) {
	r.setting.Lock()
	defer r.setting.Unlock()
	quota, err := r.setCluster(ctx)
	if err != nil {
		return cluster, own, err
	}
	var all v1beta1.ChatQuotaList
	if err := r.Client.List(ctx, &all, client.InNamespace(ns)); err != nil {
		return cluster, own, fmt.Errorf("listing ChatQuotas: %w", err)
	}
	r.Gate.SetNamespace(ns, capacity.OfNamespace(all.Items))
	return capacity.OfCluster(quota), all.Items, nil
}

func (r *Reconciler) reconcileCluster(ctx context.Context) (ctrl.Result, error) {
	r.setting.Lock()
	quota, err := r.setCluster(ctx)
	r.setting.Unlock()
	if err != nil || quota == nil || !r.Owns("") {
		return ctrl.Result{}, err
	}
	next := quota.DeepCopy()
	conditions.ClusterChatQuota(next, capacity.OfCluster(quota), r.Now())
	return requeue.Status(ctx, r.Client, quota, next)
}
