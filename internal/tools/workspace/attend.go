// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// grace is how long a command of an interrupted chat has to end after SIGTERM, so that all of it ends within a second.
	grace = 500 * time.Millisecond
	// descendantGrace is how long its descendants have to end after the command.
	descendantGrace = 300 * time.Millisecond
	// endTimeout bounds the end of a command whose chat was interrupted. With startGrace and findTimeout, that is less
	// than the 15 s after which an interrupted turn ends without its results.
	endTimeout = 8 * time.Second
	// findTimeout bounds the search for a command that a former attempt has started.
	findTimeout = 4 * time.Second
)

// descendantPauses are the pauses between checks of descendants.
var descendantPauses = retry.Backoff{First: 100 * time.Millisecond, Max: 2 * time.Second}

// awaitProcess waits for the end of a process, at most so long, and shows its output meanwhile, from the offset on. A
// process that still runs then is no error.
func (c *common) awaitProcess(
	ctx context.Context, workspace *client.Client, call tools.Call, p *protocol.Process, most time.Duration, from int64,
) (*protocol.Process, error) {
	defer call.Alive()
	if p.State != protocol.Running || most <= 0 {
		return p, nil
	}
	waiting, done := c.timeout(ctx, most)
	defer done()
	following, stop := context.WithCancel(waiting)
	var running sync.WaitGroup
	running.Go(func() { follow(following, workspace, p.ID, from, call.Show) })
	ended, err := workspace.Wait(waiting, p.ID, call.Alive)
	stop()
	running.Wait()
	if err == nil || ctx.Err() != nil || waiting.Err() == nil {
		return ended, err
	}
	return workspace.Process(ctx, p.ID)
}

// awaitDescendants waits for the end of the descendants of a command that has exited, at most so long.
func (c *common) awaitDescendants(
	ctx context.Context, workspace *client.Client, call tools.Call, p *protocol.Process, most time.Duration,
) (*protocol.Process, error) {
	if p.Descendants == nil || most <= 0 {
		return p, nil
	}
	waiting, done := c.timeout(ctx, most)
	defer done()
	for pauses := descendantPauses.Start(); p.Descendants != nil && pauses.Wait(waiting, nil) == nil; {
		next, err := workspace.Process(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		call.Alive()
		p = next
	}
	return p, ctx.Err()
}

// end sends SIGTERM to a process of an interrupted chat and its descendants, and SIGKILL to those that still run. It
// returns the process afterwards.
func (c *common) end(ctx context.Context, workspace *client.Client, id string) (*protocol.Process, error) {
	for _, signal := range []protocol.Signal{protocol.Terminate, protocol.Kill} {
		_, err := workspace.Signal(ctx, id, signal)
		if isCode(err, protocol.NotRunning) {
			return workspace.Process(ctx, id)
		}
		if err != nil {
			return nil, err
		}
		waiting, done := c.timeout(ctx, grace)
		_, err = workspace.Wait(waiting, id, func() {})
		late := waiting.Err() != nil
		done()
		if err != nil && !late {
			return nil, err
		}
		if !late && signal == protocol.Terminate {
			_ = retry.Sleep(ctx, descendantGrace)
		}
	}
	return workspace.Process(ctx, id)
}

// findByKey returns the process that was started with a key; nil: there is none.
func findByKey(ctx context.Context, workspace *client.Client, key string) (*protocol.Process, error) {
	all, err := workspace.Processes(ctx)
	if i := slices.IndexFunc(all, func(p protocol.Process) bool { return p.Key == key }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}
