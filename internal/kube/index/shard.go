// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// ofNamespaces lists and watches what lw does, without the objects of namespaces that has refuses. They are dropped as
// soon as they have been decoded: nothing that keeps objects ever sees one of them. An object never changes its
// namespace, so that a list, a watch and the deletion agree on which there are. Objects without a namespace stay.
func ofNamespaces(lw cache.ListerWatcher, has func(namespace string) bool) cache.ListerWatcher {
	from := cache.ToListerWatcherWithContext(lw)
	keeps := func(namespace string) bool { return namespace == "" || has(namespace) }
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := from.ListWithContext(ctx, o)
			if err != nil {
				return nil, err // The reflector looks at its kind.
			}
			return list, keepIn(list, keeps)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			all, err := from.WatchWithContext(ctx, o)
			if err != nil {
				return nil, err // The reflector looks at its kind.
			}
			return drained{watch.Filter(all, func(e watch.Event) (watch.Event, bool) {
				object, err := meta.Accessor(e.Object) // An error is none, and a bookmark has no namespace.
				return e, err != nil || keeps(object.GetNamespace())
			})}, nil
		},
	}, lw)
}

// drained is a filtered watch that lets go of the event that it may be about to hand on when it is stopped.
type drained struct{ watch.Interface }

// Stop implements watch.Interface. It returns once the filter has ended. What it filters may hand on an event before it
// stops, too.
func (d drained) Stop() {
	var stopping sync.WaitGroup
	stopping.Go(d.Interface.Stop)
	for range d.ResultChan() { // They are dropped.
	}
	stopping.Wait()
}

// keepIn leaves in a list the objects of the namespaces that it keeps.
func keepIn(list runtime.Object, keeps func(namespace string) bool) error {
	var kept []runtime.Object
	err := meta.EachListItem(list, func(o runtime.Object) error {
		object, err := meta.Accessor(o)
		if err == nil && keeps(object.GetNamespace()) {
			kept = append(kept, o)
		}
		return err
	})
	if err == nil {
		err = meta.SetList(list, kept)
	}
	if err != nil {
		return fmt.Errorf("leaving other namespaces out of %T: %w", list, err)
	}
	return nil
}
