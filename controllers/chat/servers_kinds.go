// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// discovered are the kinds of the cluster. It is safe for concurrent use.
type discovered struct {
	mapper meta.RESTMapper
	// watch begins to watch a kind.
	watch func(schema.GroupVersionKind) error

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// discover returns the kinds of the manager's cluster. The controller is told of changes of what chats wait for.
func discover(mgr ctrl.Manager, c controller.Controller, a *awaited) *discovered {
	return &discovered{mapper: mgr.GetRESTMapper(), watched: map[schema.GroupVersionKind]bool{},
		watch: func(kind schema.GroupVersionKind) error {
			o := &metav1.PartialObjectMetadata{} // Of the rest nothing is kept.
			o.SetGroupVersionKind(kind)
			return c.Watch(source.Kind[client.Object](mgr.GetCache(), o, handler.EnqueueRequestsFromMapFunc(
				func(_ context.Context, o client.Object) []reconcile.Request {
					return a.by(object{kind.GroupKind(), client.ObjectKeyFromObject(o)})
				})))
		}}
}

// Version implements Kinds.
func (d *discovered) Version(kind schema.GroupKind, versions []string) (string, error) {
	for _, version := range versions {
		_, err := d.mapper.RESTMapping(kind, version)
		switch {
		case err == nil:
			return version, nil
		case !meta.IsNoMatchError(err):
			return "", fmt.Errorf("asking for the kind %s: %w", kind, err)
		}
	}
	return "", nil
}

// Watch implements Kinds.
func (d *discovered) Watch(kind schema.GroupVersionKind) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watched[kind] {
		return nil
	}
	if err := d.watch(kind); err != nil {
		return fmt.Errorf("watching the kind %s: %w", kind.GroupKind(), err)
	}
	d.watched[kind] = true
	return nil
}
