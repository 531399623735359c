// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"syscall"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
)

// TestStopReportsCommandSignalToWaitingClients: nobody can ask for it later, because the pod is gone.
func TestStopReportsCommandSignalToWaitingClients(t *testing.T) {
	for i := range 5 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorkspace(t)
			w.bind("chat")
			var p protocol.Process
			w.ask("PUT", "/v1/processes/k", protocol.StartRequest{Command: "echo up; exec sleep 60"}, &p)
			w.ask("GET", "/v1/processes/"+p.ID+"/output?wait=30", nil, nil)
			// It is asked before the workspace is stopped, or a moment later, when nobody has been told of an end.
			go func() { _ = w.program.Process.Signal(syscall.SIGTERM) }()
			w.ask("GET", "/v1/processes/"+p.ID+"?wait=30", nil, &p)
			if p.State != protocol.Exited || p.Signal != "SIGTERM" {
				t.Errorf("the command is %+v", p)
			}
			if out := w.ask("GET", "/v1/processes/"+p.ID+"/output", nil, nil); out != "up\n" {
				t.Errorf("it has written %q", out)
			}
		})
	}
}
