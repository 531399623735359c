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

// endCommands ends everything but the serving process: first with SIGTERM, after the grace with SIGKILL. Supervisors
// end by themselves, once they have told how their commands did.
func (i *Init) endCommands() {
	i.table.mu.Lock()
	i.table.stopping = true
	i.table.tell(&link.Message{Stopping: true}, -1)
	i.table.mu.Unlock()
	i.awaitStarts() // What is still being started must not miss the signal.
	running, all := i.table.below()
	proctree.Send(syscall.SIGTERM, running, all)
	if !i.table.goneWithin(i.Grace, func() {}) {
		i.table.goneWithin(afterKill, func() { proctree.Kill(i.table.below) })
	}
}

// killAll ends everything below process 1, whatever it forks meanwhile. The kernel does that at once for the real one.
func (i *Init) killAll() {
	if os.Getpid() == 1 {
		_ = i.system.kill(-1, syscall.SIGKILL) // There is nothing.
		return
	}
	proctree.Kill(i.table.below)
}

// lookAround is the time between two looks for what was adopted from elsewhere, such as from a program that somebody
// has run in the container: the kernel does not tell of that.
const lookAround = 10 * time.Second

// maxLooks is how often what was adopted is killed in a row: each time takes a second at most.
const maxLooks = 4

// endAdoptedUntil ends whatever process 1 adopts, until it is told to stop.
func (i *Init) endAdoptedUntil(stopped <-chan struct{}) {
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for {
		select {
		case <-i.adopted:
		case <-tick.C:
		case <-stopped:
			return
		}
		i.endAdopted()
	}
}

// endAdopted ends what process 1 has adopted. More of it can come only by the death of something that it ends here, of
// which reap tells. Then the commands whose supervisors were killed are done.
func (i *Init) endAdopted() {
	i.table.mu.Lock()
	orphaned := i.table.orphaned
	i.table.orphaned = nil
	i.table.mu.Unlock()
	for look := 0; ; look++ {
		if _, left := proctree.Kill(i.table.strays); !left {
			break
		}
		if look == maxLooks { // They may hang in the kernel, or belong to another user. The next look comes with time.
			i.Log.Warn("processes that were adopted do not end")
			break
		}
	}
	i.table.mu.Lock()
	defer i.table.mu.Unlock()
	for _, c := range orphaned {
		exit := link.Exit{ID: c.id, Status: syscall.WaitStatus(syscall.SIGKILL), At: i.Now()}
		if c.exit != nil {
			exit = *c.exit
		}
		i.table.finish(c, exit, true)
	}
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
			i.table.killServing()
		}
	}
}
