// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/testing/faultclient"
)

// manager is one life of a manager process, with the namespace of its run as its world.
type manager struct {
	*faultclient.Process
	cancel context.CancelFunc
	ended  chan error
}

func startManager(ctx context.Context, ns string, o faultclient.Options) (*manager, error) {
	ctx, cancel := context.WithCancel(ctx)
	m := &manager{Process: faultclient.New(o), cancel: cancel, ended: make(chan error, 1)}
	mgr, err := controllers.NewManager(ctx, m.Config(cluster.Config), ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		// A process that has died waits for nothing: what its goroutines still try comes to nothing.
		GracefulShutdownTimeout: new(time.Second),
		MapperProvider:          func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewCache: func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
			o.DefaultNamespaces = map[string]cache.Config{ns: {}}
			return cache.New(cfg, o)
		},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("creating a manager: %w", err)
	}
	err = controllers.Setup(mgr, controllers.Options{
		Pods:        podspec.Settings{Image: "parley:test", Issuer: "https://issuer.test"},
		PodCapacity: 8, PodIdle: time.Hour, Workers: 4, Now: time.Now,
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("setting up the controllers: %w", err)
	}
	go func() { m.ended <- mgr.Start(ctx) }()
	return m, nil
}

// stop ends the life, and waits until nothing of it runs any more.
func (m *manager) stop() {
	m.Kill()
	m.cancel()
	<-m.ended // An error says what was cut short.
}
