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
	i.mu.Lock()
	i.stopping = true
	i.tell(&link.Message{Stopping: true}, -1)
	i.mu.Unlock()
	i.awaitStarts() // What is still being started must not miss the signal.
	running, all := i.below()
	proctree.Send(syscall.SIGTERM, running, all)
	if !i.goneWithin(i.Grace, func() {}) {
		i.goneWithin(afterKill, func() { proctree.Kill(i.below) })
	}
}

// goneWithin waits until nothing is left below process 1 but the serving process.
func (i *Init) goneWithin(patience time.Duration, meanwhile func()) bool {
	end, tick := time.NewTimer(patience), time.NewTicker(look)
	defer end.Stop()
	defer tick.Stop()
	for {
		meanwhile()
		i.mu.Lock()
		supervised := len(i.supervised)
		i.mu.Unlock()
		if running, _ := i.below(); len(running)+supervised == 0 {
			return true
		}
		select {
		case <-tick.C:
		case <-end.C:
			return false
		}
	}
}

// killAll ends everything below process 1, whatever it forks meanwhile. The kernel does that at once for the real one.
func (i *Init) killAll() {
	if os.Getpid() == 1 {
		_ = i.system.kill(-1, syscall.SIGKILL) // There is nothing.
		return
	}
	proctree.Kill(i.below)
}

// below is what runs below process 1, but for the serving process and supervisors.
func (i *Init) below() (running, all []proctree.Process) {
	return i.find(func(bool) bool { return true })
}

// strays are what process 1 has adopted, with all that is below them: what is below no supervisor.
func (i *Init) strays() (strays, all []proctree.Process) {
	return i.find(func(supervised bool) bool { return !supervised })
}

// find are processes below process 1, by whether they are below a supervisor.
func (i *Init) find(meant func(supervised bool) bool) (found, all []proctree.Process) {
	all, err := proctree.All()
	if err != nil {
		i.Log.Warn("the processes cannot be seen", "error", err)
		return nil, nil
	}
	i.mu.Lock() // What was forked before that look is known by now.
	defer i.mu.Unlock()
	supervised := map[int]bool{}
	for _, p := range proctree.Below(all, os.Getpid()) {
		own := i.supervised[p.PID] != nil
		if supervised[p.PID] = own || supervised[p.Parent]; own || i.serving != nil && p.PID == i.serving.pid || p.Ended {
			continue
		}
		if meant(supervised[p.PID]) {
			found = append(found, p)
		}
	}
	return found, all
}

// lookAround is the time between two looks for what was adopted from elsewhere, such as from a program that somebody
// has run in the container: the kernel does not tell of that.
const lookAround = 10 * time.Second

// maxLooks is how often what was adopted is killed in a row: each time takes a second at most.
const maxLooks = 4

// hunt has what was adopted be ended.
func (i *Init) hunt() {
	select {
	case i.adopted <- struct{}{}:
	default:
	}
}

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
	i.mu.Lock()
	orphaned := i.orphaned
	i.orphaned = nil
	i.mu.Unlock()
	for look := 0; ; look++ {
		if _, left := proctree.Kill(i.strays); !left {
			break
		}
		if look == maxLooks { // They may hang in the kernel, or belong to another user. The next look comes with time.
			i.Log.Warn("processes that were adopted do not end")
			break
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range orphaned {
		exit := link.Exit{ID: c.id, Status: syscall.WaitStatus(syscall.SIGKILL), At: i.Now()}
		if c.exit != nil {
			exit = *c.exit
		}
		i.finish(c, exit, true)
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
