// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"os"
	"syscall"
	"time"

	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/agent/proctree"
)

const (
	// afterKill is how long processes have to go after SIGKILL, and lastWords how long the serving process has to write
	// down what has become of them. With Grace they stay below the 30 s of a pod.
	afterKill, lastWords = 2 * time.Second, 4 * time.Second
	// look is the time between two looks at what is left.
	look = 20 * time.Millisecond
)

// endCommands ends everything but the serving process: first with SIGTERM, after the grace with SIGKILL.
func (i *Init) endCommands() {
	i.mu.Lock()
	i.stopping = true
	i.tell(&link.Message{Stopping: true}, -1)
	i.mu.Unlock()
	i.signalAll(syscall.SIGTERM)
	if !i.goneWithin(i.Grace, func() {}) {
		i.goneWithin(afterKill, i.killRest)
	}
	// Whatever has ended is told before the serving process is let go.
	i.reap()
}

func (i *Init) goneWithin(patience time.Duration, meanwhile func()) bool {
	end, tick := time.NewTimer(patience), time.NewTicker(look)
	defer end.Stop()
	defer tick.Stop()
	for {
		meanwhile()
		if len(i.rest()) == 0 {
			return true
		}
		select {
		case <-tick.C:
		case <-end.C:
			return false
		}
	}
}

func (i *Init) killRest() { i.signalAll(syscall.SIGKILL) }

func (i *Init) signalAll(signal syscall.Signal) {
	for _, p := range i.rest() {
		_ = p.Signal(signal) // It has gone, or may not be signalled: then the end of the container ends it.
	}
}

// killAll ends everything below process 1, whatever it forks meanwhile. The kernel does that at once for the real one;
// elsewhere all is stopped first, so that nothing is forked while it is looked for.
func (i *Init) killAll() {
	if os.Getpid() == 1 {
		_ = i.system.kill(-1, syscall.SIGKILL) // There is nothing.
		return
	}
	stopped := map[int]bool{}
	for before := -1; before < len(stopped); {
		before = len(stopped)
		for _, p := range i.rest() {
			_ = p.Signal(syscall.SIGSTOP) // It has gone.
			stopped[p.PID] = true
		}
	}
	i.signalAll(syscall.SIGKILL)
}

// rest is what still runs below process 1, but for the serving process. All of it is below: orphans are adopted.
func (i *Init) rest() (rest []proctree.Process) {
	all, err := proctree.All()
	if err != nil {
		i.Log.Warn("the processes cannot be seen", "error", err)
		return nil
	}
	i.mu.Lock()
	serving := 0
	if i.serving != nil {
		serving = i.serving.pid
	}
	i.mu.Unlock()
	for _, p := range proctree.Below(all, os.Getpid()) {
		if !p.Ended && p.PID != serving {
			rest = append(rest, p)
		}
	}
	return rest
}

// endServing waits for the serving process, which has been told that nothing more comes, and ends it if it stays.
func (i *Init) endServing(served <-chan struct{}) {
	patience := time.NewTimer(lastWords)
	defer patience.Stop()
	for done := false; !done; {
		i.reap()
		tick := time.NewTimer(look)
		select {
		case <-served:
			done = true
		case <-tick.C:
		case <-patience.C:
			i.Log.Warn("the serving process does not end")
			close(i.abandoned)
		}
		tick.Stop()
		if over(i.abandoned) {
			i.killServing()
		}
	}
}

// killServing reaches it only while it has not been reaped.
func (i *Init) killServing() {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.serving
	if s == nil {
		return
	}
	select {
	case <-s.ended:
	default:
		_ = i.system.kill(s.pid, syscall.SIGKILL) // If that fails, it is ending.
	}
}
