// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/agent/server"
	"parley.dev/parley/internal/workspace/protocol"
)

// listenAndServe serves until the context is done.
func listenAndServe(ctx context.Context, c config, manager *process.Manager) error {
	log := logger()
	s, err := server.New(server.Options{
		Directory: c.directory,
		State:     c.state,
		Authorizer: &satoken.Verifier{
			Issuer:   c.issuer,
			Audience: protocol.Audience(c.namespace, c.podUID),
			Subjects: c.subjects,
			Keys:     &server.KeyFile{Path: c.keys, Now: time.Now, Log: log},
			Now:      time.Now,
		},
		Processes: processes{manager},
		Log:       log,
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
