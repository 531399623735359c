// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/chatlist"
)

// chats knows every chat of the cluster, without the texts in it, and tells those who follow one when it has changed.
type chats struct {
	informer  cache.SharedIndexInformer
	added     cache.ResourceEventHandlerRegistration
	logs      *chatlist.Logs
	listeners listeners
}

func newChats(source cache.ListerWatcher) (*chats, error) {
	c := &chats{
		informer: cache.NewSharedIndexInformer(source, &v1alpha1.Chat{}, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		logs: chatlist.NewLogs(),
	}
	if err := c.informer.SetTransform(withoutTexts); err != nil {
		return nil, fmt.Errorf("preparing the cache of chats: %w", err)
	}
	var err error
	c.added, err = c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(chat any) { c.changed(nil, chat) },
		UpdateFunc: c.changed,
		DeleteFunc: func(chat any) { c.changed(chat, nil) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching the cache of chats: %w", err)
	}
	return c, nil
}

// withoutTexts drops what no follower needs and what could be large: prompts can have half a megabyte.
func withoutTexts(obj any) (any, error) {
	chat, ok := obj.(*v1alpha1.Chat)
	if !ok {
		return obj, nil
	}
	chat.ManagedFields, chat.Annotations, chat.Labels = nil, nil, nil
	chat.Spec = v1alpha1.ChatSpec{ParentRef: chat.Spec.ParentRef, Suspend: chat.Spec.Suspend}
	return chat, nil
}

// changed tells those who listen how a chat was and is; nil if it did not or does not exist.
func (c *chats) changed(before, after any) {
	was, is := chatOf(before), chatOf(after)
	c.logs.Changed(was, is)
	chat := is
	if chat == nil {
		chat = was
	}
	if chat == nil {
		return
	}
	c.wake(chat.Namespace + "/" + chat.Name)
}

// wake tells those who follow a chat that there may be something new.
func (c *chats) wake(key string) { c.listeners.tell(key) }

// chatOf is the chat that an event handler was told of, also if its deletion was missed.
func chatOf(obj any) *v1alpha1.Chat {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	chat, _ := obj.(*v1alpha1.Chat)
	return chat
}

// List implements chatlist.Chats.
func (c *chats) List(namespace string) []*v1alpha1.Chat {
	found, err := c.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // the index exists
	}
	listed := make([]*v1alpha1.Chat, 0, len(found))
	for _, obj := range found {
		if chat := chatOf(obj); chat != nil {
			listed = append(listed, chat)
		}
	}
	return listed
}

// Get implements chatlist.Chats.
func (c *chats) Get(namespace, name string) *v1alpha1.Chat {
	obj, exists, err := c.informer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil
	}
	return chatOf(obj)
}

// watcher is one follower's view of one chat. It implements follow.Chats.
type watcher struct {
	chats   *chats
	key     string
	changed <-chan struct{}
	stop    func()
}

// watch begins to watch a chat, which need not exist. Stop it when done.
func (c *chats) watch(namespace, name string) *watcher {
	w := &watcher{chats: c, key: namespace + "/" + name}
	w.changed, w.stop = c.listeners.listen(w.key)
	return w
}

// Latest implements follow.Chats.
func (w *watcher) Latest() *v1alpha1.Chat {
	namespace, name, _ := strings.Cut(w.key, "/")
	return w.chats.Get(namespace, name)
}

// Changed implements follow.Chats.
func (w *watcher) Changed() <-chan struct{} { return w.changed }

// newPods knows the generation pods: their addresses and accounts, and nothing else of them.
func newPods(source cache.ListerWatcher) (cache.SharedIndexInformer, error) {
	pods := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{})
	err := pods.SetTransform(func(obj any) (any, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return obj, nil
		}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
				ResourceVersion: pod.ResourceVersion},
			Spec:   corev1.PodSpec{ServiceAccountName: pod.Spec.ServiceAccountName, HostNetwork: pod.Spec.HostNetwork},
			Status: corev1.PodStatus{PodIP: pod.Status.PodIP},
		}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the cache of pods: %w", err)
	}
	return pods, nil
}
