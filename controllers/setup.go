// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers lists the controllers of the manager. Each has a package of its own, named for its kind; they do
// not know each other.
package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"parley.dev/parley/controllers/chat"
	"parley.dev/parley/controllers/chatclass"
	"parley.dev/parley/controllers/chatdebugstep"
	"parley.dev/parley/controllers/chatmessage"
	"parley.dev/parley/controllers/chatmodelconfig"
	"parley.dev/parley/controllers/chatquota"
	"parley.dev/parley/controllers/generationpod"
	"parley.dev/parley/controllers/storedfile"
	"parley.dev/parley/controllers/workspace"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/internal/pods/modellimits"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/workspace/template"
)

// Options of the controllers.
type Options struct {
	// Pods says what generation pods are built from, all but the namespace and its keys.
	Pods podspec.Settings
	// GatewayNamespace is the namespace of the gateways that may reach relays and agents.
	GatewayNamespace string
	// PodStart is how long a generation pod may take until it is ready for the first time; then its chats get another one.
	PodStart time.Duration
	// PodIdle is how long a generation pod without work is kept.
	PodIdle time.Duration
	// ReportAfter is how long an attempt has to be under way before the message that it answers says so; 0:
	// chatmessage.DefaultReportAfter.
	ReportAfter time.Duration
	// Workspaces says what workspaces are made from, all but the namespace's own.
	Workspaces template.Settings
	// IssuerKeys fetches the issuer's public keys, a JWKS.
	IssuerKeys func(ctx context.Context) ([]byte, error)
	// Workers is how many chats, and how many messages, are reconciled at once.
	Workers int
	// Scope says which namespaces the controllers work for; the manager's cache has to be of the same.
	Scope shard.Scope
	// Lease elects the one of several managers whose controllers run: see ElectLeader. nil: those of this one run.
	Lease resourcelock.Interface
	// Metrics is where the controllers' own metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
	// Now returns the current time.
	Now func() time.Time
	// Archive is where chats are archived before their retention deletes them, and has the files of chats; nil: nowhere.
	Archive *archive.Store
	// Tracer makes the spans of turns; nil: there are none.
	Tracer *tracing.Tracer
}

// Setup has the manager run every controller, with a lease only while it has that.
func Setup(mgr ctrl.Manager, o Options) error {
	others, err := chatsElsewhere(mgr, o.Scope)
	if err != nil {
		return err
	}
	if o.Lease == nil {
		return setup(mgr, o, mgr.GetCache(), others)
	}
	run := func(ctx context.Context) error { return runTerm(ctx, mgr, o, others) }
	if err := mgr.Add(&terms{lease: o.Lease, run: run, log: mgr.GetLogger()}); err != nil {
		return fmt.Errorf("adding the leader election: %w", err)
	}
	return nil
}

// setup registers every controller with the manager, whose cache has the informers.
func setup(mgr ctrl.Manager, o Options, informers cache.Informers, others cache.Cache) error {
	gate, calls := capacity.NewGate(), modellimits.NewGate()
	var measures *telemetry.Manager
	if o.Metrics != nil {
		registry, err := registererOf(o.Scope.Shard, o.Metrics)
		if err != nil {
			return err
		}
		if err := registerGauges(registry, gate); err != nil {
			return fmt.Errorf("registering the gauges: %w", err)
		}
		measures = telemetry.NewManager(registry)
	}
	access := &generationpod.Access{Client: mgr.GetClient(), GatewayNamespace: o.GatewayNamespace}
	pods := &generationpod.Pool{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Ledger: placement.NewLedger(),
		Settings: o.Pods, Prepare: access.Ensure,
		Start: o.PodStart, Now: o.Now}
	workspaceAccess := &workspace.Access{Client: mgr.GetClient(), Issuer: o.Pods.Issuer, Keys: o.IssuerKeys,
		GatewayNamespace: o.GatewayNamespace, Viewers: o.Pods.GatewaySubjects, Now: o.Now}
	quotas := &chatquota.Reconciler{Client: mgr.GetClient(), Gate: gate, Owns: o.Scope.Owns, Now: o.Now}
	type controller interface{ SetupWithManager(ctrl.Manager) error }
	all := []controller{
		chat.New(chat.Options{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Informers: informers,
			Recorder: mgr.GetEventRecorder("parley-chat"), Pods: pods, Gate: gate, LoadLimits: quotas.Load,
			Calls: calls, Elsewhere: others, Workers: o.Workers, Now: o.Now, Metrics: measures, Tracer: o.Tracer,
			Archive: o.Archive,
		}),
		&chatmessage.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Workers: o.Workers,
			ReportAfter: o.ReportAfter, Now: o.Now, Metrics: measures},
		&chatdebugstep.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Now: o.Now},
		&chatclass.Reconciler{Client: mgr.GetClient(), Now: o.Now},
		&chatmodelconfig.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), ModelHosts: o.Pods.ModelHosts,
			AllowLoopback: o.Pods.AllowLoopback, Now: o.Now},
		quotas,
		access,
		&generationpod.Spares{Client: mgr.GetClient(), Pool: pods, Recorder: mgr.GetEventRecorder("parley-generationpod")},
		&generationpod.Reconciler{Client: mgr.GetClient(), Pool: pods, Idle: o.PodIdle, Now: o.Now},
		workspaceAccess,
		&workspace.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Settings: o.Workspaces, Now: o.Now,
			Access: workspaceAccess},
	}
	if o.Archive != nil {
		all = append(all, &storedfile.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Store: o.Archive,
			Owns: o.Scope.Includes, Now: o.Now})
	}
	for _, one := range all {
		if err := one.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up %T: %w", one, err)
		}
	}
	return nil
}
