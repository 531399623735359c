// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realagent runs the agent of a workspace as a program of its own, for tests.
package realagent

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
	"parley.dev/parley/test/kit/tokens"
	"parley.dev/parley/test/kit/waiting"
)

// patience is how long the agent may take to be at work.
const patience = 30 * time.Second

// programs is where Main puts what tests build.
var programs string

// Main runs the tests of a package that starts agents.
func Main(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "parley-agent-"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(programs) }() // It is a temporary one.
	return m.Run()
}

// build builds cmd/workspace-agent once.
var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "workspace-agent")
	compile := exec.Command("go", "build", "-o", path, "parley.dev/parley/cmd/workspace-agent")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0") // The race detector's tests enable it; programs do without.
	out, err := compile.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building the agent: %w\n%s", err, out)
	}
	return path, err
})

// Agent is one whose workspace belongs to fakeworkspace.Chat.
type Agent struct {
	t testing.TB
	// Files is the workspace's directory.
	Files   string
	Program *exec.Cmd
	// Options of a client that proves to be a generation pod.
	Options client.Options
}

// Start starts one, until the test ends. Main must run the tests.
func Start(t testing.TB) *Agent {
	t.Helper()
	program, err := build()
	check.OK(t, err)
	dir, cluster := t.TempDir(), tokens.New(t)
	keys := filepath.Join(dir, "keys.json")
	check.OK(t, os.WriteFile(keys, cluster.KeySet(), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	_ = listener.Close() // The agent takes the port.
	a := &Agent{t: t, Files: filepath.Join(dir, "files")}
	a.Program = exec.CommandContext(context.WithoutCancel(t.Context()), program, "init",
		"--listen="+listener.Addr().String(), "--directory="+a.Files, "--state-dir="+filepath.Join(dir, "state"),
		"--issuer="+tokens.Issuer, "--issuer-keys="+keys,
		"--pod-namespace=team", "--pod-uid=uid")
	a.Program.Dir, a.Program.Stderr = dir, os.Stderr
	check.OK(t, a.Program.Start())
	t.Cleanup(func() {
		_ = a.Program.Process.Signal(syscall.SIGTERM) // It may have ended.
		_ = a.Program.Wait()
	})
	a.Options = fakeworkspace.OptionsOf("http://"+listener.Addr().String(), fakeworkspace.Chat)
	a.Options.Pauses = slices.Repeat([]time.Duration{50 * time.Millisecond}, 200)
	token := cluster.Sign(tokens.FirstKey, tokens.Claims("system:serviceaccount:team:parley-generation",
		protocol.Audience("team", "uid"), time.Now()))
	a.Options.Token = func(context.Context) (string, error) { return token, nil }
	asking := a.Client()
	waiting.Until(t, patience, "the agent is at work", func() bool { return asking.Healthy(t.Context()) == nil })
	check.OK(t, asking.Bind(t.Context()))
	return a
}

// Client is a new one.
func (a *Agent) Client() *client.Client { return client.New(a.Options) }

// Running are the processes below the agent whose command lines have the text.
func (a *Agent) Running(text string) (running []proctree.Process) {
	all, err := proctree.All()
	if err != nil {
		a.t.Error(err)
	}
	for _, p := range proctree.Below(all, a.Program.Process.Pid) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID)) // It may have ended.
		if !p.Ended && strings.Contains(string(line), text) {
			running = append(running, p)
		}
	}
	return running
}
