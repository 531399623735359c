// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// addProbes has the manager answer liveness probes as soon as it runs, and readiness probes once its caches are filled:
// with many chats that takes seconds, and a rollout is over when chats are answered again.
func addProbes(mgr ctrl.Manager) error {
	filled := &cachesFilled{}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", filled.Check),
		mgr.Add(filled)); err != nil {
		return fmt.Errorf("adding health checks: %w", err)
	}
	return nil
}

// cachesFilled is started when the manager's caches have what there is, whether or not the manager leads: one that is
// ready takes over at once.
type cachesFilled struct{ started atomic.Bool }

// Start implements manager.Runnable.
func (c *cachesFilled) Start(context.Context) error {
	c.started.Store(true)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *cachesFilled) NeedLeaderElection() bool { return false }

// Check implements healthz.Checker.
func (c *cachesFilled) Check(*http.Request) error {
	if !c.started.Load() {
		return errors.New("the caches are being filled")
	}
	return nil
}
