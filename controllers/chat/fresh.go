// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/index"
)

// freshReader lists what a manifest may have brought along with a chat. The cache has a watch for each kind, and may
// show the chat first; then the API server is asked. That is not for every pass: it answers such a list from its own
// cache once that has caught up, and looks every 100 ms whether it has (Kubernetes 1.31 to 1.37), while the pass holds
// one of the controller's workers. resourceVersions of custom resources count the writes of one store, so they tell
// across kinds which view is the newer one.
type freshReader struct {
	cache, live client.Reader
	// informers fill the cache; nil: how new its views are is known from what the API server was asked alone.
	informers ctrlcache.Informers
	// shown has the resourceVersion of the newest list of the API server that the cache showed as well, by kind and
	// namespace. From then on the cache lacks nothing of that list but what is gone since; at worst it still shows, for a
	// moment, what came and went before. To forget one costs a request.
	shown *lru.Cache
	// specs has the resourceVersions at which objects were first seen with the specs that they have.
	specs *lru.Cache
}

// maxRemembered is how many lists, and how many specs, are kept in mind, at some 200 bytes each.
const maxRemembered = 16384

func newFreshReader(o *Options) *freshReader {
	return &freshReader{cache: o.Client, live: o.Live, informers: o.Informers,
		shown: lru.New(maxRemembered), specs: lru.New(maxRemembered)}
}

type (
	// kindIn is a kind in a namespace.
	kindIn struct {
		kind      reflect.Type
		namespace string
	}
	// spec is what one generation of an object says.
	spec struct {
		uid        types.UID
		generation int64
	}
)

// list reads all objects of the kind in the chat's namespace, as they are since the chat and what has been said to it
// were written, or later.
func (r *freshReader) list(ctx context.Context, kind client.Object, into client.ObjectList, chat *v1alpha1.Chat) error {
	written, err := r.lastWritten(ctx, chat)
	if err != nil {
		return err
	}
	of, in := kindIn{reflect.TypeOf(kind), chat.Namespace}, client.InNamespace(chat.Namespace)
	known := asNew(r.lastShown(of), written)
	if !known {
		known, err = r.isFilledSince(ctx, kind, written)
	}
	switch {
	case err != nil:
		return err
	case known:
		return r.cache.List(ctx, into, in)
	}
	if err := r.live.List(ctx, into, in); err != nil {
		return err
	}
	return r.compare(ctx, of, into)
}

// lastWritten is the newest resourceVersion at which the chat, or a message in it that has yet to be dealt with, got
// the spec that it has.
func (r *freshReader) lastWritten(ctx context.Context, chat *v1alpha1.Chat) (string, error) {
	said, err := r.said(ctx, chat)
	if err != nil {
		return "", err
	}
	newest := r.specWritten(chat)
	for i := range said {
		if version := r.specWritten(&said[i]); older(newest, version) {
			newest = version
		}
	}
	return newest, nil
}

// said are the messages in the chat that have yet to be dealt with. They are only read.
func (r *freshReader) said(ctx context.Context, chat *v1alpha1.Chat) ([]v1alpha1.ChatMessage, error) {
	var said v1alpha1.ChatMessageList
	if err := r.cache.List(ctx, &said, client.InNamespace(chat.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{index.UnsettledByChat: chat.Name}); err != nil {
		return nil, fmt.Errorf("listing the messages of chat %s: %w", chat.Name, err)
	}
	return said.Items, nil
}

// specWritten is the first resourceVersion that was seen of the object with the spec that it has: writes of its status
// bring along nothing else.
func (r *freshReader) specWritten(o client.Object) string {
	of := spec{o.GetUID(), o.GetGeneration()}
	if version, seen := r.specs.Get(of); seen {
		return version.(string)
	}
	r.specs.Add(of, o.GetResourceVersion())
	return o.GetResourceVersion()
}

func (r *freshReader) lastShown(of kindIn) string {
	version, _ := r.shown.Get(of)
	known, _ := version.(string)
	return known
}

// isFilledSince reports whether the cache shows all objects of the kind at least as they were at that resourceVersion.
// After the manager's start it does of all that had been written before; later, once a bookmark has come.
func (r *freshReader) isFilledSince(ctx context.Context, kind client.Object, version string) (bool, error) {
	if r.informers == nil {
		return false, nil
	}
	informer, err := r.informers.GetInformer(ctx, kind)
	if err != nil {
		return false, fmt.Errorf("looking for the informer of %T: %w", kind, err)
	}
	shared, ok := informer.(toolscache.SharedInformer)
	return ok && asNew(shared.GetStore().LastStoreSyncResourceVersion(), version), nil
}

// compare keeps the API server's list in mind if the cache shows the same.
func (r *freshReader) compare(ctx context.Context, of kindIn, listed client.ObjectList) error {
	cached := reflect.New(reflect.TypeOf(listed).Elem()).Interface().(client.ObjectList)
	err := r.cache.List(ctx, cached, client.InNamespace(of.namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	now, err := versionsOf(listed)
	if err != nil {
		return err
	}
	shown, err := versionsOf(cached)
	if err == nil && maps.Equal(now, shown) && !asNew(r.lastShown(of), listed.GetResourceVersion()) {
		r.shown.Add(of, listed.GetResourceVersion())
	}
	return err
}

// versionsOf are the resourceVersions of the objects by their names.
func versionsOf(list client.ObjectList) (map[string]string, error) {
	versions := map[string]string{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		item, err := meta.Accessor(o)
		if err == nil {
			versions[item.GetName()] = item.GetResourceVersion()
		}
		return err
	})
	return versions, err
}
