// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package supervise is what the first process of a cluster does all its life: it starts programs, starts them
// again when they end, and reaps every process that lost its parent.
//
// Only one place may wait for processes. PID 1 has to collect processes it never started, so nothing here uses
// os/exec's Wait: all ends are collected in one loop and handed to whoever started the process.
package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Program says what to start.
type Program struct {
	// Name is for messages.
	Name string
	Path string
	Args []string
	// Log is the file that receives its output. It is appended to.
	Log string
}

// Supervisor starts programs with one environment.
type Supervisor struct {
	env []string
	log *slog.Logger

	mu      sync.Mutex
	waiting map[int]chan<- syscall.WaitStatus
	settled bool
}

// New makes a Supervisor. env is the whole environment of what it starts: nothing of the caller's (a proxy, say)
// gets into the cluster.
func New(env []string, log *slog.Logger) *Supervisor {
	return &Supervisor{env: env, log: log, waiting: map[int]chan<- syscall.WaitStatus{}}
}

// Reap collects ended processes until ctx ends; Run and Keep need it to be running. It takes every child of the
// process, so a process can have only one Supervisor.
func (s *Supervisor) Reap(ctx context.Context) {
	signals := make(chan os.Signal, 1) // one is enough: each round collects all there are
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	for {
		s.collect()
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
	}
}

func (s *Supervisor) collect() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
		s.mu.Lock() // start holds it until the process is known, so an early end is not missed
		ended := s.waiting[pid]
		delete(s.waiting, pid)
		s.mu.Unlock()
		if ended != nil {
			ended <- status
		}
	}
}

// start starts a program; the channel gives its end. What is closed here are copies of the program's files, to which
// nothing was written.
func (s *Supervisor) start(p Program) (<-chan syscall.WaitStatus, error) {
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer func() { _ = out.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.Name, err)
	}
	defer func() { _ = null.Close() }()

	s.mu.Lock()
	defer s.mu.Unlock()
	proc, err := os.StartProcess(p.Path, append([]string{p.Path}, p.Args...),
		&os.ProcAttr{Env: s.env, Files: []*os.File{null, out, out}})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.Name, err)
	}
	ended := make(chan syscall.WaitStatus, 1)
	s.waiting[proc.Pid] = ended
	if err := proc.Release(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.Name, err)
	}
	return ended, nil
}

// Run runs a program to its end. A failure holds the end of its output.
func (s *Supervisor) Run(ctx context.Context, p Program) error {
	ended, err := s.start(p)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("running %s: %w", p.Name, context.Cause(ctx))
	case status := <-ended:
		if status.Exited() && status.ExitStatus() == 0 {
			return nil
		}
		return fmt.Errorf("%s ended with %s%s", p.Name, describe(status), tail(p.Log))
	}
}

// Keep starts a program and keeps it running until ctx ends. Until Settle is called an end is a failed start: it
// goes to failed, and the program is not started again.
func (s *Supervisor) Keep(ctx context.Context, p Program, failed func(error)) error {
	ended, err := s.start(p)
	if err != nil {
		return err
	}
	go s.keep(ctx, p, ended, failed)
	return nil
}

// minUptime is how long a program has to live to be started again at once; one that ends earlier waits that long,
// so that a program that cannot start does not use up the machine.
const minUptime = time.Second

func (s *Supervisor) keep(ctx context.Context, p Program, ended <-chan syscall.WaitStatus, failed func(error)) {
	started := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case status := <-ended:
			if !s.isSettled() {
				failed(fmt.Errorf("%s ended while the cluster started, with %s%s", p.Name, describe(status), tail(p.Log)))
				return
			}
			s.log.Warn("program ended, starting it again", "program", p.Name, "end", describe(status))
		}
		if lived := time.Since(started); lived < minUptime {
			select {
			case <-ctx.Done():
				return
			case <-time.After(minUptime - lived):
			}
		}
		started = time.Now()
		next, err := s.start(p)
		if err != nil {
			s.log.Error("program cannot be started again", "program", p.Name, "error", err)
			return
		}
		ended = next
	}
}

// Settle says that the cluster is up: from now on an ended program is started again.
func (s *Supervisor) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = true
}

func (s *Supervisor) isSettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// tail is the end of a log, for an error message.
func tail(path string) string {
	b, err := os.ReadFile(path)
	text := strings.TrimSpace(string(b))
	if err != nil || text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	const most = 10 // enough for an error and what led to it, few enough to read
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return fmt.Sprintf("; the end of %s:\n  %s", path, strings.Join(lines, "\n  "))
}
