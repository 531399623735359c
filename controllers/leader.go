// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A standby looks at the lease every retryPeriod, plus up to 1.2 times as much (client-go's jitter). It sees a renewal
// that late, waits for leaseDuration, and looks once more: a killed leader is replaced within 4.4 s. A leader that
// stops gives its lease up, and is replaced within 0.7 s. A leader stops at most retryPeriod and renewDeadline after
// its last renewal, which is when the lease ends. It keeps its lease while the API server answers within 2 s.
const (
	// leaseDuration has whole seconds, because the Lease has.
	leaseDuration = 3 * time.Second
	renewDeadline = 2700 * time.Millisecond
	retryPeriod   = 300 * time.Millisecond
	// leaseTimeout is that of a request for the lease.
	leaseTimeout = 2500 * time.Millisecond
)

// ElectLeader has the controllers run in one of the scope's managers at a time. The others wait with full caches. The
// lease is in the namespace.
func ElectLeader(o *Options, cfg *rest.Config, namespace string) error {
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
	o.Lease, err = resourcelock.New(resourcelock.LeasesResourceLock, namespace, o.Scope.Lease(), client.CoreV1(),
		client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: host + "_" + uuid.NewString()})
	if err != nil {
		return fmt.Errorf("preparing the leader election: %w", err)
	}
	return nil
}

// terms runs the controllers while this manager leads. A manager that loses its lease waits for it again: it keeps its
// caches, and nothing else of the term. controller-runtime's own election would end the process.
type terms struct {
	lease resourcelock.Interface
	// run runs the controllers until its context is done.
	run func(context.Context) error
	log logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*terms) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (t *terms) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := t.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next waits until this manager leads, and runs the controllers until it loses the lease or is stopped. A manager that
// is stopped gives the lease up after its controllers have ended.
func (t *terms) next(ctx context.Context) error {
	started, over := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: t.lease, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Name: t.lease.Describe(),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { started <- leading }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return fmt.Errorf("preparing the leader election: %w", err)
	}
	electing, resign := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), t.log))
	defer resign()
	go func() { defer close(over); elector.Run(electing) }()
	select {
	case leading := <-started:
		err = t.lead(ctx, leading)
	case <-ctx.Done():
	}
	resign()
	<-over
	if ctx.Err() != nil || err != nil {
		t.release(ctx)
	}
	return err
}

// lead runs the controllers until one of the contexts is done.
func (t *terms) lead(ctx, leading context.Context) error {
	t.log.Info("this manager leads: it works")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()
	err := t.run(ctx)
	if leading.Err() != nil {
		t.log.Info("this manager has lost its lease: it writes nothing and waits until it leads again")
		return nil // What the end of the term cut short is no reason to end the process.
	}
	return err
}

// release gives the lease up, if this manager has it. client-go would do so after a lost lease, too, and let the
// controllers work meanwhile.
func (t *terms) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	record, _, err := t.lease.Get(ctx)
	if err == nil && record.HolderIdentity == t.lease.Identity() {
		now := metav1.Now()
		err = t.lease.Update(ctx, resourcelock.LeaderElectionRecord{LeaderTransitions: record.LeaderTransitions,
			LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now})
	}
	if err != nil {
		t.log.Info("the lease was not given up: another manager leads after it has expired", "error", err.Error())
	}
}
