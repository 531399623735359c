// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testmanager runs the manager's controllers in a test's own process, as the manager runs them.
package testmanager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/template"
)

// PodCapacity is how many chats a generation pod takes, unless a test says otherwise.
const PodCapacity = 32

// Workers is how many chats, and how many messages, a manager reconciles at once, unless a test says otherwise.
const Workers = 8

// Options of a manager.
type Options struct {
	// Config is that of the manager's clients. It is for change to read.
	Config      *rest.Config
	Manager     ctrl.Options
	Controllers controllers.Options
	// Prepare is called before the manager starts; nil: nothing is.
	Prepare func(ctrl.Manager) error
	// Kill cuts the manager off from the API server: it is called when the manager is to stop, once it has begun; nil: it
	// stops in peace.
	Kill func()
}

// Start runs the controllers until stop is called, which waits until nothing of them runs any more and says how they
// ended. Several may run in a process. Generation pods are created from images that nobody pulls, and so may take as
// long as they like to start. change may change all of this.
func Start(parent context.Context, cfg *rest.Config, change ...func(*Options)) (stop func() error, err error) {
	o := Options{
		Config: cfg,
		Manager: ctrl.Options{
			Metrics:    metricsserver.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)},
		},
		Controllers: controllers.Options{
			Pods:     podspec.Settings{Image: "parley:test", Issuer: "https://issuer.test", Capacity: PodCapacity},
			PodStart: 24 * time.Hour, PodIdle: time.Hour, Workers: Workers, Now: time.Now,
			ReportAfter: time.Second,
			Workspaces:  template.Settings{Image: "parley:test", Placement: template.InitContainer},
			IssuerKeys:  func(context.Context) ([]byte, error) { return []byte(`{"keys":[]}`), nil },
		},
	}
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	mgr, err := controllers.NewManager(ctx, cfg, o.Manager, o.Controllers.Scope)
	if err == nil {
		err = controllers.Setup(mgr, o.Controllers)
	}
	if err == nil && o.Prepare != nil {
		err = o.Prepare(mgr)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("preparing the manager: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() error {
		// controller-runtime ends no manager that is told to while its caches start.
		select {
		case <-mgr.Elected():
		case err := <-ended:
			cancel()
			return err
		}
		if o.Kill != nil {
			o.Kill()
		}
		cancel()
		return <-ended
	}, nil
}
