// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/agent/process"
)

const (
	// maxCPUs bounds how much the runtime sets aside on large nodes.
	maxCPUs = 4
	// threads is about as many as wait for disks at once.
	threads = 16
	// lastQuestions is how long the workspace serves on when it stops: who was just told how a command ended asks what it
	// has written. Nobody can later, because the pod is gone.
	lastQuestions = 500 * time.Millisecond
)

// serve is the serving process. It ends when process 1 wants it to, or is gone.
func serve(c config) error {
	if err := initproc.Conceal(); err != nil {
		return err
	}
	// Each one more costs memory, and few are ever at work.
	runtime.GOMAXPROCS(min(maxCPUs, runtime.GOMAXPROCS(0)))
	initproc.SpareThreads(threads)
	conn, err := link.Open(os.NewFile(initproc.ServingDescriptor, "process 1"))
	if err != nil {
		return fmt.Errorf("only process 1 starts a serving process: %w", err)
	}
	defer func() { _ = conn.Close() }() // Process 1 sees the end of the process just the same.
	if err := os.MkdirAll(c.directory, 0o755); err != nil {
		return fmt.Errorf("making the workspace's directory: %w", err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("looking for the container's working directory: %w", err)
	}
	manager, err := process.Open(conn, process.Options{
		Directory:   c.directory,
		StateDir:    c.state,
		Environment: os.Environ(),
		Main:        c.main,
		MainDir:     cwd,
		Now:         time.Now,
		Log:         logger(),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- listenAndServe(ctx, c, manager) }()
	managed := make(chan error, 1)
	go func() { managed <- manager.Run() }()
	select {
	case err = <-served: // Without it there is no use in the rest: process 1 starts both again.
		return err
	case err = <-managed:
		if err == nil {
			<-time.After(lastQuestions)
		}
		stop()
		return errors.Join(err, <-served)
	}
}
