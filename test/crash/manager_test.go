// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"net/http"
	"time"

	"gocloud.dev/blob/memblob"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/test/kit/faultclient"
	"parley.dev/parley/test/kit/testmanager"
)

// archiveStore is the store of all managers.
var archiveStore = archive.New(memblob.OpenBucket(nil), time.Now)

// manager is one life of a manager process, with the namespace of its run as its world.
type manager struct {
	*faultclient.Process
	// view is the manager's own of the namespace.
	view cache.Cache
	end  func() error
}

func startManager(ctx context.Context, ns string, o faultclient.Options) (*manager, error) {
	m := &manager{Process: faultclient.New(o)}
	var err error
	m.end, err = testmanager.Start(ctx, m.Config(cluster.Config), func(o *testmanager.Options) {
		o.Kill = m.Kill
		// A process that has died waits for nothing: what its goroutines still try comes to nothing.
		o.Manager.GracefulShutdownTimeout = new(time.Second)
		o.Manager.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil }
		o.Manager.NewCache = func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
			o.DefaultNamespaces = map[string]cache.Config{ns: {}}
			view, err := cache.New(cfg, o)
			m.view = view
			return view, err
		}
		o.Controllers.Archive = archiveStore
		o.Controllers.Pods.Capacity, o.Controllers.Workers = 8, 4
	})
	return m, err
}

// sees reports whether the manager knows of a message; one that has died knows nothing that counts.
func (m *manager) sees(ctx context.Context, ns, message string) bool {
	select {
	case <-m.Dead():
		return true
	default:
		return m.view.Get(ctx, client.ObjectKey{Namespace: ns, Name: message}, &v1beta1.ChatMessage{}) == nil
	}
}

// stop ends the life, and waits until nothing of it runs any more.
func (m *manager) stop() {
	_ = m.end() // An error says what was cut short.
}
