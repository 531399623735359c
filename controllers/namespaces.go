// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/shard"
)

// limit limits the manager's cache to the namespaces of the scope, if it has a list of them. Each kind then has an
// informer for each namespace, so that the manager needs no right to list a kind in the whole cluster.
func limit(o *ctrl.Options, s shard.Scope) {
	if !s.IsLimited() {
		return
	}
	own := s.Own()
	if len(own) == 0 { // An empty list would mean all namespaces. The filter of the shard drops what these have.
		own = s.Namespaces
	}
	o.Cache.DefaultNamespaces = configs(own)
	// The quotas of other shards' namespaces count for the order in which chats are admitted.
	o.Cache.ByObject[&v1beta1.ChatQuota{}] = cache.ByObject{Namespaces: configs(s.Namespaces)}
	o.NewCache = newNamespacedCache
}

func configs(namespaces []string) map[string]cache.Config {
	all := map[string]cache.Config{}
	for _, ns := range namespaces {
		all[ns] = cache.Config{}
	}
	return all
}

// namespacedCache is a cache that has several informers of a kind, and tells which.
type namespacedCache struct {
	cache.Cache
	informers *informers
}

func newNamespacedCache(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
	made := &informers{create: o.NewInformer, byKind: map[reflect.Type][]toolscache.SharedInformer{}}
	o.NewInformer = made.add
	all, err := cache.New(cfg, o)
	if err != nil {
		return nil, err // NewManager wraps it.
	}
	return namespacedCache{all, made}, nil
}

// GetInformer implements cache.Informers.
func (c namespacedCache) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (
	cache.Informer, error) {
	all, err := c.Cache.GetInformer(ctx, o, opts...)
	if err != nil {
		return nil, err // A cache returns errors as they are.
	}
	return namespacedInformer{all, c.informers.of(o)}, nil
}

// namespacedInformer is the informers of a kind, one for each namespace.
type namespacedInformer struct {
	cache.Informer
	parts []toolscache.SharedInformer
}

// Parts implements index.Parts.
func (i namespacedInformer) Parts() []toolscache.SharedInformer { return i.parts }

var _ index.Parts = namespacedInformer{}

// informers are those of a cache. It is safe for concurrent use.
type informers struct {
	create index.NewInformer

	mu     sync.Mutex
	byKind map[reflect.Type][]toolscache.SharedInformer
}

// add creates an informer.
func (i *informers) add(lw toolscache.ListerWatcher, kind runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	informer := i.create(lw, kind, resync, indexers)
	i.mu.Lock()
	defer i.mu.Unlock()
	of := reflect.TypeOf(kind)
	i.byKind[of] = append(i.byKind[of], informer)
	return informer
}

// of returns the informers of the kind.
func (i *informers) of(kind runtime.Object) []toolscache.SharedInformer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.byKind[reflect.TypeOf(kind)])
}
