// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"sync"
	"time"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// grace is how long a command of an interrupted chat has to end by itself after it was told to: half a second, so that
	// with what follows all of it has ended within one.
	grace = 500 * time.Millisecond
	// leftover is how long what a command has started has to end by itself after the command has.
	leftover = 300 * time.Millisecond
	// afterwards bounds the ending of a command whose chat was interrupted: 8 s. With startGrace and lookTime before it,
	// that is less than the 15 s after which an interrupted turn ends without its results.
	afterwards = 8 * time.Second
	// lookTime bounds the search for what an earlier life of this process has started.
	lookTime = 4 * time.Second
)

// looks is how long to pause between looks at what a command has left behind.
var looks = retry.Backoff{First: 100 * time.Millisecond, Max: 2 * time.Second}

// attend waits for the end of a process, at most so long, and shows what it writes meanwhile, from the offset on. A
// process that is still running when the time is up is no error.
func (c *common) attend(
	ctx context.Context, workspace *client.Client, call tools.Call, p *protocol.Process, most time.Duration, from int64,
) (*protocol.Process, error) {
	defer call.Alive() // What follows has its own time.
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

// awaitDescendants waits for the end of what a command has left behind that has exited, at most so long.
func (c *common) awaitDescendants(
	ctx context.Context, workspace *client.Client, call tools.Call, p *protocol.Process, most time.Duration,
) (*protocol.Process, error) {
	if p.Descendants == nil || most <= 0 {
		return p, nil
	}
	waiting, done := c.timeout(ctx, most)
	defer done()
	for pauses := looks.Start(); p.Descendants != nil && pauses.Wait(waiting, nil) == nil; {
		next, err := workspace.Process(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		call.Alive()
		p = next
	}
	return p, ctx.Err()
}

// end ends a process of an interrupted chat and all that it has started, by force what does not end by itself, and
// returns how it is then.
func (c *common) end(ctx context.Context, workspace *client.Client, id string) (*protocol.Process, error) {
	for _, signal := range []protocol.Signal{protocol.Terminate, protocol.Kill} {
		_, err := workspace.Signal(ctx, id, signal)
		if isCode(err, protocol.NotRunning) { // Nothing is left of it.
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
			_ = retry.Sleep(ctx, leftover)
		}
	}
	return workspace.Process(ctx, id)
}

// begun is the process that was started by the key; nil if none was.
func begun(ctx context.Context, workspace *client.Client, key string) (*protocol.Process, error) {
	all, err := workspace.Processes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Key == key {
			return &all[i], nil
		}
	}
	return nil, nil
}
