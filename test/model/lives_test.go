// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"parley.dev/parley/test/kit/faultclient"
	"parley.dev/parley/test/kit/testmanager"
)

// manager is one life of a manager process.
type manager struct {
	*faultclient.Process
	end func() error
}

// begun is when the manager began that runs now, in nanoseconds of the Unix epoch.
var begun atomic.Int64

// age is for how long the manager has run.
func age() time.Duration { return time.Since(time.Unix(0, begun.Load())) }

// startManager runs the manager's controllers, with one generation pod for all sequences of a namespace.
func startManager(ctx context.Context) (*manager, error) {
	m := &manager{Process: faultclient.New(faultclient.Options{})}
	begun.Store(time.Now().UnixNano())
	var err error
	m.end, err = testmanager.Start(ctx, m.Config(cluster.Config), func(o *testmanager.Options) {
		o.Kill = m.Kill
		// A process that has died waits for nothing: what its goroutines still try comes to nothing.
		o.Manager.GracefulShutdownTimeout = new(time.Second)
		o.Controllers.Pods.Capacity = 1000
	})
	return m, err
}

// stop ends the life wherever it is, and waits until nothing of it runs any more.
func (m *manager) stop() {
	_ = m.end() // An error says what was cut short.
}

// lives runs as many managers at once as -managers says, each until it is killed at random, and then the next one. That
// knows no more than what the API server tells it, also of who has a place among those that generate, and who waits.
func lives(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	end = func() {
		cancel()
		running.Wait()
	}
	for range *managersFlag {
		m, err := startManager(ctx)
		if err != nil {
			end()
			return nil, err
		}
		running.Go(func() { m.succeed(ctx) })
	}
	return end, nil
}

// succeed lets the manager live, and then one after the other, until the context ends.
func (m *manager) succeed(ctx context.Context) {
	for {
		select {
		case <-lifetime():
		case <-ctx.Done():
			m.stop()
			return
		}
		m.stop()
		var err error
		if m, err = startManager(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "a manager does not begin:", err)
			return
		}
	}
}

// lifetime ends when the manager is to be killed: after half to one and a half times as long as -life says.
func lifetime() <-chan time.Time {
	if *lifeFlag <= 0 {
		return nil
	}
	return time.After(*lifeFlag/2 + rand.N(*lifeFlag))
}
