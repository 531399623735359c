// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/index"
)

// classLister lists the ChatClasses of a namespace at least as new as a chat. The cache has a watch for each kind,
// and may show a chat before the default class that was applied first; then the API server is asked. A pass must not
// do that without need: the API server answers a consistent list from its own cache, and looks every 100 ms whether
// that has caught up (Kubernetes 1.31 to 1.37), while the pass holds one of the controller's workers.
// resourceVersions of custom resources count the writes of one store, so they tell across kinds which view is the
// newer one.
type classLister struct {
	cache, live client.Reader
	// informers fill the cache; nil: how new the cache is follows from lists of the API server alone.
	informers ctrlcache.Informers
	// cached has the resourceVersion of the newest list of the API server that the cache agreed with, by namespace. From
	// then on the cache lacks nothing of that list but what was deleted since. To forget one costs a request.
	cached *lru.Cache
	// seen has the resourceVersions at which specs were first seen, by UID and generation: later writes are of a status.
	seen *lru.Cache
}

// maxLists and maxSeen bound what is kept, at some 200 bytes each: namespaces, and chats that begin with their
// messages.
const maxLists, maxSeen = 4096, 32768

func newClassLister(o *Options) classLister {
	return classLister{cache: o.Client, live: o.Live, informers: o.Informers,
		cached: lru.New(maxLists), seen: lru.New(maxSeen)}
}

// listAsNewAs lists the classes of the chat's namespace, at least as new as the specs of the chat and of its messages
// that are open. cached are those that the cache shows.
func (l *classLister) listAsNewAs(ctx context.Context, s *scope, cached []v1beta1.ChatClass) (
	[]v1beta1.ChatClass, error) {
	newest := l.firstSeen(s.facts.Chat)
	for i := range s.unsettled {
		if version := l.firstSeen(&s.unsettled[i]); older(newest, version) {
			newest = version
		}
	}
	namespace := s.facts.Chat.Namespace
	current, err := l.isCurrent(ctx, namespace, newest)
	if err != nil {
		return nil, err
	}
	if current { // What was listed before may be older than that.
		again, err := l.list(ctx, l.cache, namespace)
		if err != nil {
			return nil, err
		}
		return again.Items, nil
	}
	listed, err := l.list(ctx, l.live, namespace)
	if err != nil {
		return nil, err
	}
	agrees := maps.Equal(versionsOf(listed.Items), versionsOf(cached))
	if agrees && !notOlder(l.cachedAt(namespace), listed.ResourceVersion) {
		l.cached.Add(namespace, listed.ResourceVersion)
	}
	return listed.Items, nil
}

func (l *classLister) list(ctx context.Context, from client.Reader, namespace string) (*v1beta1.ChatClassList, error) {
	var classes v1beta1.ChatClassList
	if err := from.List(ctx, &classes, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ChatClasses: %w", err)
	}
	return &classes, nil
}

// spec is what one generation of an object says.
type spec struct {
	uid        types.UID
	generation int64
}

// firstSeen is the first resourceVersion that was seen of the object with its spec.
func (l *classLister) firstSeen(o client.Object) string {
	key := spec{o.GetUID(), o.GetGeneration()}
	if version, seen := l.seen.Get(key); seen {
		return version.(string)
	}
	l.seen.Add(key, o.GetResourceVersion())
	return o.GetResourceVersion()
}

// cachedAt is the resourceVersion up to which the cache agreed with the API server; empty if that is not known.
func (l *classLister) cachedAt(namespace string) string {
	version, _ := l.cached.Get(namespace)
	known, _ := version.(string)
	return known
}

// isCurrent reports whether the cache is known to show the classes at least as they were at that resourceVersion: it
// agreed with a list of the API server, or its informer has come so far. At the manager's start that has for all that
// was written before; later, with each write of a class and each bookmark. Where each namespace has an informer of its
// own, all of them must have come so far: which one is the namespace's is not known.
func (l *classLister) isCurrent(ctx context.Context, namespace, version string) (bool, error) {
	if notOlder(l.cachedAt(namespace), version) {
		return true, nil
	}
	if l.informers == nil {
		return false, nil
	}
	informer, err := l.informers.GetInformer(ctx, &v1beta1.ChatClass{})
	if err != nil {
		return false, fmt.Errorf("looking for the informer of ChatClasses: %w", err)
	}
	var parts []toolscache.SharedInformer
	switch informer := informer.(type) {
	case index.Parts:
		parts = informer.Parts()
	case toolscache.SharedInformer:
		parts = []toolscache.SharedInformer{informer}
	}
	for _, part := range parts {
		if !notOlder(part.GetStore().LastStoreSyncResourceVersion(), version) {
			return false, nil
		}
	}
	return len(parts) > 0, nil
}

// versionsOf are the resourceVersions of the classes by their UIDs.
func versionsOf(classes []v1beta1.ChatClass) map[types.UID]string {
	versions := make(map[types.UID]string, len(classes))
	for i := range classes {
		versions[classes[i].UID] = classes[i].ResourceVersion
	}
	return versions
}
