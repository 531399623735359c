// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"os"
	"syscall"
	"time"

	"parley.dev/parley/internal/workspace/agent/proctree"
)

const (
	// startPatience is how long a command may take to be started when the container stops.
	startPatience = 10 * time.Second
	// killPatience is how long processes have to end after SIGKILL.
	killPatience = 2 * time.Second
	// endInterval is the time between two looks at what is left.
	endInterval = 20 * time.Millisecond
	// strayInterval is the time between two looks for what was adopted without a signal of the kernel, such as from a
	// program that someone ran in the container.
	strayInterval = 10 * time.Second
	// maxKills is how often what was adopted is killed in a row: each time takes a second at most.
	maxKills = 5
)

// EndAll ends all commands, first with SIGTERM, and with SIGKILL after the grace. No more are started. All have been
// notified when it returns, but for those that SIGKILL did not end in time.
func (i *Init) EndAll(grace time.Duration) {
	i.mu.Lock()
	i.stopping = true
	i.mu.Unlock()
	late := time.AfterFunc(startPatience, i.killStarting)
	i.starts.Wait() // What is being started must not miss the signal.
	late.Stop()
	running, all := i.running()
	proctree.Send(syscall.SIGTERM, running, all)
	if !i.goneWithin(grace, func() {}) {
		i.goneWithin(killPatience, func() { proctree.Kill(i.running) })
	}
	i.reap()
	i.endAdopted()
}

// killStarting kills the supervisors of commands of which it is not known whether they were started.
func (i *Init) killStarting() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for pid, c := range i.supervised {
		if !c.settled {
			_ = i.system.kill(pid, syscall.SIGKILL) // It has not been reaped.
		}
	}
}

// goneWithin waits until nothing is left below this process, and reports whether that is so.
func (i *Init) goneWithin(patience time.Duration, meanwhile func()) bool {
	for late := time.After(patience); ; {
		meanwhile()
		i.mu.Lock()
		supervised := len(i.supervised)
		i.mu.Unlock()
		if running, _ := i.running(); len(running)+supervised == 0 {
			return true
		}
		select {
		case <-time.After(endInterval):
		case <-late:
			return false
		}
	}
}

// endAdoptedForever ends whatever this process adopts.
func (i *Init) endAdoptedForever() {
	for {
		select {
		case <-i.adopted:
		case <-time.After(strayInterval):
		}
		i.endAdopted()
	}
}

// endAdopted ends what this process has adopted. Then the commands whose supervisors were killed are done. More is
// adopted only by the death of something that it ends here, which reap notices.
func (i *Init) endAdopted() {
	i.hunting.Lock()
	defer i.hunting.Unlock()
	i.mu.Lock()
	orphaned := i.orphaned
	i.orphaned = nil
	i.mu.Unlock()
	left := true
	for n := 0; left && n < maxKills; n++ {
		_, left = proctree.Kill(i.strays)
	}
	if left { // They may hang in the kernel, or belong to another user. The next look comes with time.
		i.log.Warn("processes that were adopted do not end")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range orphaned {
		state := c.state
		if !state.Exited {
			state = State{Exited: true, Status: syscall.WaitStatus(syscall.SIGKILL), At: i.now()}
		}
		state.Done, state.Orphaned = true, true
		i.change(c, state)
	}
}

// running are the processes below this one, but for supervisors, and all that there are.
func (i *Init) running() (running, all []proctree.Process) {
	return i.find(func(bool) bool { return true })
}

// strays are those that are below no supervisor: what this process has adopted, with all that is below them.
func (i *Init) strays() (strays, all []proctree.Process) {
	return i.find(func(supervised bool) bool { return !supervised })
}

func (i *Init) find(isMeant func(supervised bool) bool) (found, all []proctree.Process) {
	all, err := proctree.All()
	if err != nil {
		i.log.Warn("the processes cannot be listed", "error", err)
		return nil, nil
	}
	i.mu.Lock() // What was forked before that look is known by now.
	defer i.mu.Unlock()
	supervised := map[int]bool{}
	for _, p := range proctree.Below(all, os.Getpid()) {
		own := i.supervised[p.PID] != nil
		supervised[p.PID] = own || supervised[p.Parent]
		if !own && !p.Ended && isMeant(supervised[p.PID]) {
			found = append(found, p)
		}
	}
	return found, all
}
