// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// errStarted says that something comes too late.
var errStarted = errors.New("the informer has been started")

// informer keeps what a Reflector reads. Handlers are told of a change before the next one is made, in the Reflector's
// goroutine: nothing is queued for them, which for all objects that are listed first would cost as much as the objects.
// So a handler must not wait for another change of the same kind.
type informer struct {
	reflector *cache.Reflector
	codec     *Codec
	siblings  map[string]string
	transform cache.TransformFunc
	indexers  cache.Indexers
	// indexes are the names of indexers in the order in which items have their values.
	indexes []string
	table   table
	synced  gate
	started atomic.Bool
	stopped atomic.Bool

	// mu is held while something changes and handlers are told.
	mu       sync.Mutex
	handlers []*registration
}

// NewInformer returns an informer of namespaced objects that keeps them packed. Whoever reads its store or hears of a
// change gets an object of his own. The store is only read; indexes are added before the informer runs. All handlers
// are told of all objects again after each resync; zero: never.
//
// siblings says of indexes whose values are names of objects by which other index such an object and those that name it
// are found together. The store keeps no table of such an index: it looks among them.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers,
	codec *Codec, siblings map[string]string) (cache.SharedIndexInformer, error) {
	i := &informer{codec: codec, siblings: siblings, indexers: cache.Indexers{}, synced: newGate(codec.object.Name())}
	i.reflector = cache.NewReflectorWithOptions(lw, example, i.sink(), cache.ReflectorOptions{ResyncPeriod: resync})
	if err := i.AddIndexers(indexers); err != nil {
		return nil, fmt.Errorf("making an informer of %T: %w", example, err)
	}
	return i, nil
}

// AddIndexers implements cache.SharedIndexInformer.
func (i *informer) AddIndexers(added cache.Indexers) error {
	if i.started.Load() {
		return errStarted
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if i.indexers[name] != nil {
			return fmt.Errorf("there is an index %s already", name)
		}
		i.indexers[name] = added[name]
		if name != cache.NamespaceIndex { // The key says it.
			i.indexes = append(i.indexes, name)
			i.table.addIndex(i.siblings[name] == "")
		}
	}
	return nil
}

// SetTransform implements cache.SharedInformer.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	if i.started.Load() {
		return errStarted
	}
	i.transform = transform
	return nil
}

// SetWatchErrorHandler implements cache.SharedInformer: errors of watches are logged, and nobody else is told.
func (*informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return errors.ErrUnsupported }

// SetWatchErrorHandlerWithContext implements cache.SharedInformer, like SetWatchErrorHandler.
func (*informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return errors.ErrUnsupported
}

// Run implements cache.SharedInformer.
func (i *informer) Run(stop <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext implements cache.SharedInformer.
func (i *informer) RunWithContext(ctx context.Context) {
	if i.started.Swap(true) {
		return
	}
	i.reflector.RunWithContext(ctx)
	i.stopped.Store(true)
}

// IsStopped implements cache.SharedInformer.
func (i *informer) IsStopped() bool { return i.stopped.Load() }

// HasSynced implements cache.SharedInformer.
func (i *informer) HasSynced() bool { return i.synced.HasSynced() }

// HasSyncedChecker implements cache.SharedInformer.
func (i *informer) HasSyncedChecker() cache.DoneChecker { return i.synced }

// LastSyncResourceVersion implements cache.SharedInformer.
func (i *informer) LastSyncResourceVersion() string { return i.reflector.LastSyncResourceVersion() }

// GetController implements cache.SharedInformer.
func (i *informer) GetController() cache.Controller { return i }

// GetStore implements cache.SharedInformer.
func (i *informer) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer implements cache.SharedIndexInformer.
func (i *informer) GetIndexer() cache.Indexer { return store{i} }

// pack makes an item of an object. Those of a list that was watched have been here before.
func (i *informer) pack(o any) (item, error) {
	if one, ok := o.(item); ok {
		return one, nil
	}
	if i.transform != nil {
		var err error
		if o, err = i.transform(o); err != nil {
			return "", err
		}
	}
	object, ok := o.(metav1.Object)
	if !ok {
		return "", fmt.Errorf("%T is no object", o)
	}
	values := make([][]string, len(i.indexes))
	for n, name := range i.indexes {
		all, err := i.indexers[name](o)
		if err != nil {
			return "", fmt.Errorf("indexing %s by %s: %w", object.GetName(), name, err)
		}
		for _, value := range all { // Those for all namespaces say nothing else.
			if value, ok := strings.CutPrefix(value, object.GetNamespace()+"/"); ok {
				values[n] = append(values[n], value)
			}
		}
	}
	return newItem(i.codec, object, values), nil
}

// unpack makes the object again.
func (i *informer) unpack(one item) any { return one.unpack(i.codec, len(i.indexes)) }
