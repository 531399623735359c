// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// addProbes has the manager answer liveness probes as soon as it runs, and readiness probes once its caches are filled,
// which takes seconds with many chats. So a rollout ends when chats are answered again.
func addProbes(mgr ctrl.Manager) error {
	// The manager starts runnables when its caches are filled.
	filled := &readiness{missing: "the caches are being filled", await: func(context.Context) error {
		setGCPercent(filledGCPercent)
		return nil
	}}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), filled.addTo(mgr, "caches")); err != nil {
		return fmt.Errorf("adding health checks: %w", err)
	}
	return nil
}

const (
	// fillingGCPercent is GOGC while the caches are filled: the manager then reads all messages to keep a little of each,
	// and its memory is at its peak.
	fillingGCPercent = 50
	// filledGCPercent is GOGC afterwards. With 10,000 chats the heap then stays below that peak. At 50, a quarter of
	// the manager's CPU time in a burst went to collections.
	filledGCPercent = 150
)

// setGCPercent sets how often garbage is collected, unless the variable GOGC does.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// readiness keeps the manager from being ready until await succeeds. Replicas that do not lead become ready, too: they
// take over at once.
type readiness struct {
	missing string
	await   func(context.Context) error
	ready   atomic.Bool
}

func (r *readiness) addTo(mgr ctrl.Manager, name string) error {
	return errors.Join(mgr.AddReadyzCheck(name, r.Check), mgr.Add(r))
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*readiness) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (r *readiness) Start(ctx context.Context) error {
	if r.await(ctx) == nil {
		r.ready.Store(true)
	}
	return nil
}

// Check implements healthz.Checker.
func (r *readiness) Check(*http.Request) error {
	if !r.ready.Load() {
		return errors.New(r.missing)
	}
	return nil
}
