// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process names a process so that its number cannot be mistaken for another's later.
//
// Linux gives process numbers out again. A Ref therefore carries the start time too, and a Ref whose process has
// ended never matches a new one: nothing that this cluster did not start is ever signalled.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Ref is one process of this machine. The zero Ref is no process.
type Ref struct {
	PID int `json:"pid"`
	// Start is when it started, in clock ticks since boot (field 22 of /proc/PID/stat).
	Start string `json:"start"`
}

// Of names the process that has this number now.
func Of(pid int) (Ref, error) {
	f, err := stat(pid)
	if err != nil {
		return Ref{}, err
	}
	return Ref{PID: pid, Start: f.start}, nil
}

type fields struct{ state, start string }

// stat reads /proc/PID/stat. The second field, the name, may hold spaces and brackets: count from its end.
func stat(pid int) (fields, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return fields{}, fmt.Errorf("reading about process %d: %w", pid, err)
	}
	rest := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	const first, state, start = 3, 3, 22 // the fields' numbers in proc(5); rest begins with the first
	if len(rest) <= start-first {
		return fields{}, fmt.Errorf("reading about process %d: %q is too short", pid, b)
	}
	return fields{rest[state-first], rest[start-first]}, nil
}

// Alive says whether the process still runs. One that has ended and only waits to be reaped does not.
func (r Ref) Alive() bool {
	if r.PID <= 0 {
		return false
	}
	f, err := stat(r.PID)
	return err == nil && f.start == r.Start && f.state != "Z" && f.state != "X"
}

// Kill ends the process at once and waits until it is gone. A process that is gone already is no error.
func (r Ref) Kill(ctx context.Context) error {
	if !r.Alive() {
		return nil
	}
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending process %d: %w", r.PID, err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for r.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for process %d to end: %w", r.PID, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// Child finds the direct child that runs the program of this name. ok is false if there is none now.
func (r Ref) Child(program string) (child Ref, ok bool) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.PID))
	if err != nil || !r.Alive() {
		return Ref{}, false
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // that thread has just ended
		}
		for word := range strings.FieldsSeq(string(b)) {
			pid, err := strconv.Atoi(word)
			if err != nil || !runs(pid, program) {
				continue
			}
			if child, err := Of(pid); err == nil && child.Alive() {
				return child, true
			}
		}
	}
	return Ref{}, false
}

// runs says whether a process executes a program of this name.
func runs(pid int, program string) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && filepath.Base(exe) == program
}
