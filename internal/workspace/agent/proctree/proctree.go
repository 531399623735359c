// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proctree lists the processes of a container from /proc, and sends them signals. A process is identified by
// its id and the time of its start, so that no signal reaches another process that got the same id.
package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is one that existed when All listed it.
type Process struct {
	PID, Parent, Group int
	// Ended reports whether it is a zombie. A process of which only the first thread has ended looks like one, and runs.
	Ended bool
	start string
	// name is that of its program, or what it calls itself.
	name string
}

// All are the processes that /proc shows.
func All() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	defer func() { _ = dir.Close() }() // It was only read.
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	var all []Process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := read(pid); err == nil { // else: It has ended meanwhile.
			all = append(all, p)
		}
	}
	return all, nil
}

func read(pid int) (Process, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Process{}, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	return parse(pid, raw)
}

// parse reads proc_pid_stat(5). The second field is a name in parentheses, which may hold spaces and parentheses.
func parse(pid int, stat []byte) (Process, error) {
	const state, parent, group, threads, start = 0, 1, 2, 17, 19
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if begin < 0 || end < begin || len(fields) <= start {
		return Process{}, fmt.Errorf("process %d: %d fields", pid, len(fields))
	}
	p, alive := Process{PID: pid, start: fields[start], name: string(stat[begin+1 : end])}, 0
	for field, to := range map[int]*int{parent: &p.Parent, group: &p.Group, threads: &alive} {
		n, err := strconv.Atoi(fields[field])
		if err != nil {
			return Process{}, fmt.Errorf("process %d: %w", pid, err)
		}
		*to = n
	}
	// A zombie counts as one thread until it is reaped.
	p.Ended = (fields[state] == "Z" || fields[state] == "X") && alive <= 1
	return p, nil
}

// Below are the descendants of a process, parents before their children.
func Below(all []Process, root int) []Process {
	children := map[int][]Process{}
	for _, p := range all {
		if p.PID != p.Parent {
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].PID]...)
	}
	return found
}

// CommandLine is what the process was started with, at most so many bytes of it, its words with spaces between them.
// One that has none has its name in brackets.
func (p Process) CommandLine(most int) string {
	line := ""
	if f, err := os.Open(filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline")); err == nil { // else: It has ended.
		defer func() { _ = f.Close() }() // It was only read.
		raw, _ := io.ReadAll(io.LimitReader(f, int64(most)))
		line = strings.TrimSpace(strings.ReplaceAll(string(raw), "\x00", " "))
	}
	if line == "" {
		return "[" + p.name + "]"
	}
	return line
}

// Signal sends the signal to this process and to no other. The error is unix.ESRCH if it has ended.
func (p Process) Signal(signal unix.Signal) error {
	handle, err := unix.PidfdOpen(p.PID, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		handle = -1 // Some sandboxes have no such handles.
	} else if err != nil {
		return fmt.Errorf("signalling process %d: %w", p.PID, err)
	}
	if handle >= 0 {
		defer func() { _ = unix.Close(handle) }() // It was only used.
	}
	if now, err := read(p.PID); err != nil || now.start != p.start {
		return fmt.Errorf("signalling process %d: %w", p.PID, unix.ESRCH)
	}
	if handle >= 0 {
		err = unix.PidfdSendSignal(handle, signal, nil, 0)
	} else {
		err = unix.Kill(p.PID, signal)
	}
	if err != nil {
		return fmt.Errorf("signalling process %d: %w", p.PID, err)
	}
	return nil
}
