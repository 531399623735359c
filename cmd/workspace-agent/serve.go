// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"time"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/agent/server"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxCPUs bounds how much the runtime sets aside on large nodes.
	maxCPUs = 4
	// lastQuestions is how long the workspace is served after the end of all commands: who was just told how a command
	// ended asks for its output. No one can later, because the pod is gone.
	lastQuestions = 500 * time.Millisecond
)

// serve serves the workspace until a container runtime stops the container.
func serve(c config) error {
	runtime.GOMAXPROCS(min(maxCPUs, runtime.GOMAXPROCS(0)))
	log := logger()
	stopped, err := initproc.Stopped(log)
	if err != nil {
		return err
	}
	stopped, end := context.WithCancel(stopped)
	defer end()
	manager, err := openManager(stopped, c, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served, managed := make(chan error, 1), make(chan struct{})
	go func() { served <- listenAndServe(ctx, c, manager, log) }()
	go func() {
		defer close(managed)
		manager.Run(stopped)
	}()
	select {
	case err := <-served: // The container is restarted, once its commands have ended as at every stop.
		end()
		<-managed
		return err
	case <-managed:
		<-time.After(lastQuestions)
		stop()
		return <-served
	}
}

// openManager prepares the process to run commands.
func openManager(ctx context.Context, c config, log *slog.Logger) (*process.Manager, error) {
	i, err := initproc.New(time.Now, log)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.directory, 0o755); err != nil {
		return nil, fmt.Errorf("creating the workspace's directory: %w", err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the container's working directory: %w", err)
	}
	return process.Open(ctx, process.Options{
		Directory:   c.directory,
		StateDir:    c.state,
		Environment: os.Environ(),
		Main:        c.main,
		MainDir:     cwd,
		Init:        i,
		Grace:       c.grace,
		Now:         time.Now,
		Log:         log,
	})
}

// listenAndServe serves until the context is done.
func listenAndServe(ctx context.Context, c config, manager *process.Manager, log *slog.Logger) error {
	generators := satoken.Verifier{
		Issuer:   c.issuer,
		Audience: protocol.Audience(c.namespace, c.podUID),
		Subjects: c.subjects,
		Keys:     &server.KeyFile{Path: c.keys, Now: time.Now, Log: log},
		Now:      time.Now,
	}
	viewers := generators
	viewers.Subjects = c.viewers
	s, err := server.New(server.Options{
		Directory:  c.directory,
		State:      c.state,
		Authorizer: &generators,
		Viewers:    &viewers,
		Run:        manager.Capture,
		Processes:  processes{manager},
		Log:        log,
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("listening for generation pods: %w", err)
	}
	return s.Run(ctx, listener)
}

// processes are the manager's as the server has them.
type processes struct{ *process.Manager }

// Speak implements server.Processes.
func (p processes) Speak(key string, r *protocol.StartRequest) (server.Session, error) {
	s, err := p.Manager.Speak(key, r)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Output implements server.Processes.
func (p processes) Output(id string, from int64) (*server.Output, error) {
	out, err := p.Manager.Output(id, from)
	if err != nil {
		return nil, err
	}
	return &server.Output{From: out.From, Total: out.Total, ReadCloser: out}, nil
}
