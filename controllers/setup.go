// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers lists the controllers of the manager. Each has a package of its own, named for its kind; they do
// not know each other.
package controllers

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/controllers/chat"
	"parley.dev/parley/controllers/chatmessage"
	"parley.dev/parley/controllers/chatmodelconfig"
	"parley.dev/parley/controllers/generationpod"
	"parley.dev/parley/internal/capacity"
	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
)

// Options of the controllers.
type Options struct {
	// Pods says what generation pods are built from, all but the namespace and its keys.
	Pods podspec.Settings
	// GatewayNamespace is the namespace of the gateways that may reach relays.
	GatewayNamespace string
	// PodCapacity is how many chats a generation pod serves at once.
	PodCapacity int
	// PodIdle is how long a generation pod without work is kept.
	PodIdle time.Duration
	// ClusterCapacity and NamespaceCapacity are how many chats generate at once, in all namespaces and in each. Zero:
	// package capacity's defaults.
	ClusterCapacity, NamespaceCapacity capacity.Limits
	// Workers is how many chats, and how many messages, are reconciled at once.
	Workers int
	// Now tells the time.
	Now func() time.Time
}

// Setup registers every controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	ledger := placement.NewLedger()
	gate := capacity.NewGate(orDefault(o.ClusterCapacity, capacity.DefaultCluster), orDefault(o.NamespaceCapacity, capacity.DefaultNamespace))
	for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&chat.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("parley-chat"), Ledger: ledger,
			Pods: o.Pods, GatewayNamespace: o.GatewayNamespace, PodCapacity: o.PodCapacity, Gate: gate, Workers: o.Workers, Now: o.Now,
		},
		&chatmessage.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Workers: o.Workers, Now: o.Now},
		&chatmodelconfig.Reconciler{Client: mgr.GetClient(), Now: o.Now},
		&generationpod.Reconciler{Client: mgr.GetClient(), Ledger: ledger, Pods: o.Pods, Idle: o.PodIdle, Now: o.Now},
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

func orDefault(limits, fallback capacity.Limits) capacity.Limits {
	if limits == (capacity.Limits{}) {
		return fallback
	}
	return limits
}
