// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package proctree

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// killPatience is how long Kill waits for the end of what it has killed, and killInterval the time between two looks.
	killPatience = time.Second
	killInterval = 5 * time.Millisecond
	// maxLooks bounds how often Kill looks for something new before it kills.
	maxLooks = 20
)

// Look finds the targets of a signal, and all processes that there are.
type Look func() (targets, all []Process)

// Send sends a signal to each of the targets once. A process group that consists of targets has it at once, and so do
// those that are forked there meanwhile.
func Send(signal unix.Signal, targets, all []Process) {
	isTarget, others, sent := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, p := range targets {
		isTarget[p.PID] = true
	}
	for _, p := range all {
		if !isTarget[p.PID] && !p.Ended {
			others[p.Group] = true
		}
	}
	for _, p := range targets {
		switch {
		case p.Group <= 1 || others[p.Group]: // A group that the container does not see has the number 0.
			_ = p.Signal(signal) // It has ended, or may not be signalled.
		case !sent[p.Group]:
			sent[p.Group] = true
			_ = unix.Kill(-p.Group, signal) // The same.
		}
	}
}

// Kill ends all that a look finds, whatever that forks meanwhile: all of it is stopped first, so that looking comes to
// an end. It reports whether there was anything, and whether anything is left.
func Kill(look Look) (found, left bool) {
	stopped := map[int]bool{}
	targets, all := look()
	for range maxLooks {
		before := len(stopped)
		for _, p := range targets {
			stopped[p.PID] = true
		}
		if len(stopped) == before {
			break
		}
		Send(unix.SIGSTOP, targets, all)
		targets, all = look()
	}
	for late := time.After(killPatience); len(targets) > 0; targets, all = look() {
		Send(unix.SIGKILL, targets, all)
		select {
		case <-time.After(killInterval):
		case <-late:
			return true, true
		}
	}
	return len(stopped) > 0, false
}
