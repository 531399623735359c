// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package proctree

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// killPatience is how long Kill looks for what it has not reached, and killInterval the time between two looks.
	killPatience = time.Second
	killInterval = 5 * time.Millisecond
	// maxLooks bounds how often Kill looks for something new before it kills.
	maxLooks = 20
)

// Look finds the processes that are meant, and all that there are.
type Look func() (meant, all []Process)

// Send sends a signal to each of the processes once. A process group of which no other process is has it at once, and
// so do those that are forked there meanwhile.
func Send(signal unix.Signal, meant, all []Process) {
	isMeant, others, sent := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, p := range meant {
		isMeant[p.PID] = true
	}
	for _, p := range all {
		if !isMeant[p.PID] && !p.Ended {
			others[p.Group] = true
		}
	}
	for _, p := range meant {
		switch {
		case p.Group <= 1 || others[p.Group]: // A group that the container does not see has the number 0.
			_ = p.Signal(signal) // It has gone, or may not be signalled.
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
	meant, all := look()
	for range maxLooks {
		before := len(stopped)
		for _, p := range meant {
			stopped[p.PID] = true
		}
		if len(stopped) == before {
			break
		}
		Send(unix.SIGSTOP, meant, all)
		meant, all = look()
	}
	until := time.NewTimer(killPatience)
	defer until.Stop()
	for {
		if len(meant) == 0 {
			return len(stopped) > 0, false
		}
		Send(unix.SIGKILL, meant, all)
		pause := time.NewTimer(killInterval)
		select {
		case <-pause.C:
		case <-until.C:
			pause.Stop()
			return true, true
		}
		meant, all = look()
	}
}
