// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/podspec"
)

// Scheme holds the kinds that the manager knows.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	utilruntime.Must(sandboxes.AddToScheme(scheme))
	utilruntime.Must(pools.AddToScheme(scheme))
	return scheme
}

// NewManager returns a manager with the cache that the controllers need: of the scope's namespaces, indexed, without
// message text, and of Pods, and of what they run with, only those that are Parley's.
func NewManager(ctx context.Context, cfg *rest.Config, o ctrl.Options, s shard.Scope) (ctrl.Manager, error) {
	// The API server's priority and fairness limits the manager; a second limit here would only add latency.
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	o.Scheme = Scheme()
	ofWorkspaces := labels.SelectorFromSet(labels.Set{podspec.LabelComponent: podspec.ComponentWorkspace})
	ofGenerationPods := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", podspec.ServiceAccount)}
	o.Cache = cache.Options{
		// Not by object, which all clusters would have to have.
		DefaultTransform: index.StripOther,
		ByObject: map[client.Object]cache.ByObject{
			// Each reader gets an object of its own, unpacked for it, and may change that.
			&v1beta1.Chat{}:                 {Transform: index.StripChat, UnsafeDisableDeepCopy: new(true)},
			&v1beta1.ChatMessage{}:          {Transform: index.StripMessage, UnsafeDisableDeepCopy: new(true)},
			&v1beta1.ChatClass{}:            {Transform: index.StripClass},
			&corev1.Pod{}:                   {Label: podsOfParley()},
			&corev1.PersistentVolumeClaim{}: {Label: ofWorkspaces},
			&corev1.PodTemplate{}: {
				Label: labels.SelectorFromSet(labels.Set{v1beta1.LabelWorkspaceTemplate: "true"})},
			// By name and not by a label, which people can remove, and so that the manager needs no right to any other.
			&corev1.ServiceAccount{}:      ofGenerationPods,
			&rbacv1.Role{}:                ofGenerationPods,
			&rbacv1.RoleBinding{}:         ofGenerationPods,
			&networkingv1.NetworkPolicy{}: ofGenerationPods,
		},
	}
	setGCPercent(fillingGCPercent)
	o.Cache.NewInformer = index.Informers(namespacesOf(s.Shard))
	limit(&o, s)
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := index.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	return mgr, addProbes(mgr)
}

// namespacesOf reports of a namespace whether the shard has it; nil: it has all.
func namespacesOf(s shard.Shard) func(namespace string) bool {
	if s.IsAll() {
		return nil
	}
	return s.Owns
}

// podsOfParley selects generation pods and those of workspaces.
func podsOfParley() labels.Selector {
	either, err := labels.NewRequirement(podspec.LabelComponent, selection.In,
		[]string{podspec.ComponentGeneration, podspec.ComponentWorkspace})
	utilruntime.Must(err)
	return labels.NewSelector().Add(*either)
}
