// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/packed"
)

// NewInformer makes an informer for the manager's cache.
type NewInformer = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// Parts is an informer that consists of others, each of the objects of one namespace.
type Parts interface {
	// Parts returns these informers.
	Parts() []cache.SharedInformer
}

// lookups are those of messages, which are asked for within a chat's namespace. What follows a message is looked for
// among those of its chat: an index would have a set for each message, which holds the next one.
var lookups = packed.Options{
	Namespaced: []string{indexName(MessagesByChat)},
	Siblings:   map[string]string{indexName(MessagesByParent): indexName(MessagesByChat)},
}

// indexName is what controller-runtime's cache calls the index of a field.
func indexName(field string) string { return "field:" + field }

// everywhere are the kinds that each manager keeps of all namespaces: what they allow in one counts for the order in
// which chats of the others are admitted.
var everywhere = map[reflect.Type]bool{reflect.TypeFor[*v1beta1.ChatQuota](): true}

// Informers returns what makes the informers of the manager's cache. Chats and messages, of which there are many that
// rest, are kept packed; of the other kinds there are few. Messages are listed by their chat, so that there is no index
// of a namespace's. keeps reports of a namespace whether its objects are kept; of the others only ChatQuotas are. nil:
// those of all namespaces are.
func Informers(keeps func(namespace string) bool) NewInformer {
	return func(lw cache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers cache.Indexers,
	) cache.SharedIndexInformer {
		if keeps != nil && !everywhere[reflect.TypeOf(kind)] {
			lw = ofNamespaces(lw, keeps)
		}
		switch kind.(type) {
		case *v1beta1.ChatMessage:
			delete(indexers, cache.NamespaceIndex)
		case *v1beta1.Chat:
		default:
			return cache.NewSharedIndexInformer(lw, kind, resync, indexers)
		}
		informer, err := packed.NewInformer(lw, kind, resync, indexers, lookups)
		utilruntime.Must(err) // It has seen no object yet.
		return informer
	}
}
