// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/internal/kube/shard"
)

// A standby looks at the lease every retryPeriod, plus up to 1.2 times as much (client-go's jitter). It sees a renewal
// that late, waits for leaseDuration, and looks once more: a killed leader is replaced within 4.9 s. A leader that
// stops gives its lease up, and is replaced within 0.7 s. A leader keeps its lease while the API server answers within
// 2.5 s.
const (
	leaseDuration = 3500 * time.Millisecond
	renewDeadline = 3200 * time.Millisecond
	retryPeriod   = 300 * time.Millisecond
	// leaseTimeout is that of a request for the lease. The library's own, half of renewDeadline, would end requests to a
	// slow API server that are in time.
	leaseTimeout = 2800 * time.Millisecond
)

// ElectLeader has one of the scope's managers work, and the others wait with full caches. Its lease is in the
// namespace.
func ElectLeader(o *ctrl.Options, cfg *rest.Config, s shard.Scope, namespace string) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = leaseTimeout
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("creating the client of the leader election: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming the manager in the leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, s.Lease(), client.CoreV1(),
		client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: host + "_" + uuid.NewString()})
	if err != nil {
		return fmt.Errorf("preparing the leader election: %w", err)
	}
	o.LeaderElection, o.LeaderElectionReleaseOnCancel, o.LeaderElectionResourceLockInterface = true, true, lock
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = new(leaseDuration), new(renewDeadline), new(retryPeriod)
	return nil
}
