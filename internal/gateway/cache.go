// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/chatlist"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/pods/podspec"
)

// source lists and watches the objects of one kind in a namespace, or in all of them.
type source func(namespace string) cache.ListerWatcher

// Sources are what the gateway caches.
type Sources struct {
	chats, pods, notes source
}

// NewSources returns those of a cluster.
func NewSources(client *apiclient.Client, core rest.Interface) Sources {
	generationPods := func(o *metav1.ListOptions) {
		o.LabelSelector = podspec.LabelComponent + "=" + podspec.ComponentGeneration
	}
	return Sources{
		chats: func(namespace string) cache.ListerWatcher { return client.Chats(namespace).ListerWatcher("") },
		pods: func(namespace string) cache.ListerWatcher {
			return cache.NewFilteredListWatchFromClient(core, "pods", namespace, generationPods)
		},
		notes: func(namespace string) cache.ListerWatcher {
			return client.Messages(namespace).ListerWatcher(noteSelector)
		},
	}
}

// informer caches the objects of one kind, in some namespaces or in all. Each namespace has a cache of its own, so that
// one that cannot be read does not keep the others back.
type informer[T runtime.Object] struct {
	caches []*namespaceCache
}

// namespaceCache has the objects of a namespace; of all if that is empty.
type namespaceCache struct {
	cache.SharedIndexInformer
	namespace string
	handled   cache.ResourceEventHandlerRegistration
}

// newInformer caches the objects of a source in the namespaces, or in all if there are none, reduced by reduce. It
// calls changed with each object before and after a change; the zero value if the object did not or does not exist.
// Objects of different namespaces may change at the same time.
func newInformer[T runtime.Object](from source, namespaces []string, example T, indexers cache.Indexers,
	reduce func(T) T, changed func(before, after T)) (*informer[T], error) {
	i := &informer[T]{}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(after any) { changed(objectOf[T](nil), objectOf[T](after)) },
		UpdateFunc: func(before, after any) { changed(objectOf[T](before), objectOf[T](after)) },
		DeleteFunc: func(before any) { changed(objectOf[T](before), objectOf[T](nil)) },
	}
	transform := func(obj any) (any, error) {
		if object, ok := obj.(T); ok {
			return reduce(object), nil
		}
		return obj, nil
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		c := cache.NewSharedIndexInformer(from(namespace), example, 0, indexers)
		failed := c.SetTransform(transform)
		handled, err := c.AddEventHandler(handler)
		if err = errors.Join(failed, err); err != nil {
			return nil, fmt.Errorf("preparing the cache of %T: %w", example, err)
		}
		i.caches = append(i.caches, &namespaceCache{SharedIndexInformer: c, namespace: namespace, handled: handled})
	}
	return i, nil
}

// run fills the caches until ctx is done.
func (i *informer[T]) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, c := range i.caches {
		running.Go(func() { c.RunWithContext(ctx) })
	}
	running.Wait()
}

// hasSynced reports whether changed was called with all objects of the namespace once; for the empty one, with those of
// any namespace.
func (i *informer[T]) hasSynced(namespace string) bool {
	return slices.ContainsFunc(i.caches, func(c *namespaceCache) bool {
		return (namespace == "" || c.namespace == "" || c.namespace == namespace) && c.handled.HasSynced()
	})
}

// get returns an object; the zero value if there is none.
func (i *informer[T]) get(namespace, name string) (object T) {
	for _, c := range i.caches {
		if obj, exists, _ := c.GetStore().GetByKey(namespace + "/" + name); exists { // It never fails.
			return objectOf[T](obj)
		}
	}
	return object
}

// indexed lists the objects that have a key in an index, which must exist.
func (i *informer[T]) indexed(index, key string) (objects []T) {
	for _, c := range i.caches {
		found, _ := c.GetIndexer().ByIndex(index, key) // The index exists.
		for _, obj := range found {
			objects = append(objects, objectOf[T](obj))
		}
	}
	return objects
}

// objectOf is the object of an event or a cache, also if its deletion was missed.
func objectOf[T any](obj any) T {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	object, _ := obj.(T)
	return object
}

// chats caches the chats, without the texts in it, and notifies the followers of a chat of its changes.
type chats struct {
	*informer[*v1beta1.Chat]
	logs      *chatlist.Logs
	listeners listeners
}

func newChats(from source, namespaces []string) (_ *chats, err error) {
	c := &chats{logs: chatlist.NewLogs()}
	c.informer, err = newInformer(from, namespaces, &v1beta1.Chat{},
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, withoutTexts, c.changed)
	return c, err
}

// withoutTexts drops what followers do not need and what can be large: a prompt can have half a megabyte. When text was
// last removed says which messages are current.
func withoutTexts(chat *v1beta1.Chat) *v1beta1.Chat {
	maps.DeleteFunc(chat.Annotations, func(key, _ string) bool {
		return key != v1beta1.AnnotationRedacted && key != v1beta1.AnnotationCreatedBy
	})
	chat.ManagedFields, chat.Labels = nil, nil
	chat.Spec = v1beta1.ChatSpec{ParentRef: chat.Spec.ParentRef, Suspend: chat.Spec.Suspend}
	return chat
}

func (c *chats) changed(before, after *v1beta1.Chat) {
	c.logs.Changed(before, after)
	if chat := cmp.Or(after, before); chat != nil {
		c.listeners.notify(chat.Namespace + "/" + chat.Name)
	}
}

// List implements chatlist.Chats.
func (c *chats) List(namespace string) []*v1beta1.Chat {
	return c.indexed(cache.NamespaceIndex, namespace)
}

// Get implements chatlist.Chats.
func (c *chats) Get(namespace, name string) *v1beta1.Chat { return c.get(namespace, name) }

// watcher is the view of one chat that one follower has. It implements follow.Chats.
type watcher struct {
	chats   *chats
	key     string
	changed <-chan struct{}
	stop    func()
}

// watch watches a chat, which need not exist. Stop it when done.
func (c *chats) watch(namespace, name string) *watcher {
	w := &watcher{chats: c, key: namespace + "/" + name}
	w.changed, w.stop = c.listeners.listen(w.key)
	return w
}

// Latest implements follow.Chats.
func (w *watcher) Latest() *v1beta1.Chat {
	namespace, name, _ := strings.Cut(w.key, "/")
	return w.chats.Get(namespace, name)
}

// Changed implements follow.Chats.
func (w *watcher) Changed() <-chan struct{} { return w.changed }

// addressOnly keeps the address and the account of a generation pod.
func addressOnly(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion},
		Spec:   corev1.PodSpec{ServiceAccountName: pod.Spec.ServiceAccountName, HostNetwork: pod.Spec.HostNetwork},
		Status: corev1.PodStatus{PodIP: pod.Status.PodIP},
	}
}

// listeners are notified when an object has changed. Changes that a listener has not received yet are merged.
type listeners struct {
	mu sync.Mutex
	// of has the channels of the listeners, by the namespace and name of the object.
	of map[string]map[chan struct{}]struct{}
}

// listen adds a listener of an object, which need not exist. Call stop when done.
func (l *listeners) listen(key string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]map[chan struct{}]struct{}{}
	}
	if l.of[key] == nil {
		l.of[key] = map[chan struct{}]struct{}{}
	}
	l.of[key][ch] = struct{}{}
	return ch, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.of[key], ch)
		if len(l.of[key]) == 0 {
			delete(l.of, key)
		}
	}
}

// notify notifies the listeners of an object.
func (l *listeners) notify(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ch := range l.of[key] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
