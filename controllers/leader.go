// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/internal/kube/shard"
)

// A killed leader is replaced within leaseDuration and retryPeriod: 4.5 s. A leader that stops gives its lease up, and
// is replaced within retryPeriod. A leader keeps its lease while the API server takes up to renewDeadline less
// retryPeriod to answer: 3 s. Chats wait meanwhile, and lose nothing.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3500 * time.Millisecond
	retryPeriod   = 500 * time.Millisecond
)

// ElectLeader has one of the scope's managers work, and the others wait with full caches.
func ElectLeader(o *ctrl.Options, s shard.Scope) {
	o.LeaderElection, o.LeaderElectionID, o.LeaderElectionReleaseOnCancel = true, s.Lease(), true
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = new(leaseDuration), new(renewDeadline), new(retryPeriod)
}
