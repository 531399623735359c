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
// show the chat first; then the API server is asked. A pass must not do that without need: the API server answers a
// list that has to be current from its own cache, and looks every 100 ms whether that has caught up (Kubernetes 1.31 to
// 1.37), while the pass holds one of the controller's workers. resourceVersions of custom resources count the writes of
// one store, so they tell across kinds which view is the newer one.
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

// maxLists and maxSpecs are how many are kept in mind, at some 200 bytes each: lists of two kinds, specs of chats that
// begin and of their messages.
const maxLists, maxSpecs = 4096, 32768

func newFreshReader(o *Options) *freshReader {
	return &freshReader{cache: o.Client, live: o.Live, informers: o.Informers,
		shown: lru.New(maxLists), specs: lru.New(maxSpecs)}
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

// said reads the messages of people in the chat that have yet to be dealt with. The decision rests on them.
func (r *freshReader) said(ctx context.Context, s *scope) ([]v1alpha1.ChatMessage, error) {
	chat := s.facts.Chat
	var messages v1alpha1.ChatMessageList
	if err := r.cache.List(ctx, &messages, client.InNamespace(chat.Namespace),
		client.MatchingFields{index.UnsettledByChat: chat.Name}); err != nil {
		return nil, fmt.Errorf("listing open messages: %w", err)
	}
	for i := range messages.Items {
		s.restOn(r.specWritten(&messages.Items[i]))
	}
	return messages.Items, nil
}

// approvals reads what people decided about calls of the chat that is not in its status yet. The decision rests on it.
func (r *freshReader) approvals(ctx context.Context, s *scope) ([]v1alpha1.ToolApproval, error) {
	chat := s.facts.Chat
	var approvals v1alpha1.ToolApprovalList
	if err := r.cache.List(ctx, &approvals, client.InNamespace(chat.Namespace),
		client.MatchingFields{index.OpenApprovalsByChat: chat.Name}); err != nil {
		return nil, fmt.Errorf("listing the approvals of chat %s: %w", chat.Name, err)
	}
	for i := range approvals.Items {
		s.restOn(r.specWritten(&approvals.Items[i]))
	}
	return approvals.Items, nil
}

// absent reads all objects of the kind in the chat's namespace of which one is missing in the cache, as new as all that
// the decision rests on; as they are now, if what is named is missing without which a turn can fail.
func (r *freshReader) absent(ctx context.Context, s *scope, kind client.Object, into client.ObjectList, named bool) (
	asOf string, live bool, err error) {
	said, err := r.said(ctx, s)
	if err != nil {
		return "", false, err
	}
	if _, err := r.approvals(ctx, s); err != nil {
		return "", false, err
	}
	basis := s.basis
	if live = named && s.absenceEndsTurn(said); live {
		basis = ""
	}
	asOf, err = r.list(ctx, kind, into, s.facts.Chat.Namespace, basis)
	return asOf, live, err
}

// list reads all objects of the kind in the namespace, at least as new as that resourceVersion; empty: as they are now.
// It returns which resourceVersion they are known to be as new as.
func (r *freshReader) list(ctx context.Context, kind client.Object, into client.ObjectList, namespace, basis string) (
	string, error) {
	of := kindIn{reflect.TypeOf(kind), namespace}
	known, err := r.isKnown(ctx, kind, of, basis)
	if err != nil {
		return "", err
	}
	if known {
		return basis, r.cache.List(ctx, into, client.InNamespace(namespace))
	}
	if err := r.live.List(ctx, into, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	return into.GetResourceVersion(), r.rememberIfShown(ctx, of, into)
}

// isKnown reports whether the cache is known to show the objects at least as they were at that resourceVersion.
func (r *freshReader) isKnown(ctx context.Context, kind client.Object, of kindIn, basis string) (bool, error) {
	if notOlder(r.lastShown(of), basis) {
		return true, nil
	}
	return r.isSyncedTo(ctx, kind, basis)
}

// specWritten is the first resourceVersion that was seen of the object with the spec that it has. Writes of its status
// count for nothing: a manifest brings specs.
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

// isSyncedTo reports whether the informer of the kind has come as far as that resourceVersion. At the manager's start
// it has for all that was written before; later, with each write of that kind and each bookmark. Where each namespace
// has an informer of its own, all of them must have come as far: which one is the namespace's is not known.
func (r *freshReader) isSyncedTo(ctx context.Context, kind client.Object, version string) (bool, error) {
	if r.informers == nil {
		return false, nil
	}
	informer, err := r.informers.GetInformer(ctx, kind)
	if err != nil {
		return false, fmt.Errorf("looking for the informer of %T: %w", kind, err)
	}
	var parts []toolscache.SharedInformer
	switch informer := informer.(type) {
	case index.Parts:
		parts = informer.Parts()
	case toolscache.SharedInformer:
		parts = append(parts, informer)
	}
	for _, part := range parts {
		if !notOlder(part.GetStore().LastStoreSyncResourceVersion(), version) {
			return false, nil
		}
	}
	return len(parts) > 0, nil
}

// rememberIfShown keeps the API server's list in mind if the cache shows the same.
func (r *freshReader) rememberIfShown(ctx context.Context, of kindIn, listed client.ObjectList) error {
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
	if err == nil && maps.Equal(now, shown) && !notOlder(r.lastShown(of), listed.GetResourceVersion()) {
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
