// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// patience is for what takes milliseconds where nothing else runs.
const patience = 30 * time.Second

// agent is one of a workspace, and what it keeps.
type agent struct {
	t        testing.TB
	settings settings
	program  *exec.Cmd
	client   *rpc.Client
}

// newAgent starts one. It and all that it has started are ended with the test.
func newAgent(t testing.TB, with ...func(*settings)) *agent {
	t.Helper()
	dir := t.TempDir()
	a := &agent{t: t, settings: settings{
		// The socket has no file, whose path could be too long.
		Directory: filepath.Join(dir, "workspace"), State: filepath.Join(dir, "state"), Socket: "@parley-" + newKey(),
		Grace: 2 * time.Second,
	}}
	for _, change := range with {
		change(&a.settings)
	}
	check.OK(t, os.MkdirAll(a.settings.Directory, 0o755))
	t.Cleanup(func() { // Only a program that ends by itself writes its coverage.
		if a.program != nil {
			a.stop()
		}
	})
	a.boot()
	return a
}

func inNamespace(s *settings) { s.Namespace = true }

// boot starts the agent, as the start of a container does. As below nohup, two signals are ignored.
func (a *agent) boot() {
	a.t.Helper()
	raw, err := json.Marshal(a.settings)
	check.OK(a.t, err)
	self, err := os.Executable()
	check.OK(a.t, err)
	a.program = exec.Command("/bin/sh", "-c", `trap "" HUP INT; exec "$0"`, self)
	a.program.Dir = "/"
	a.program.Env = append(os.Environ(), settingsVariable+"="+string(raw))
	a.program.Stderr = os.Stderr
	a.program.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.settings.Namespace {
		a.program.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	if err := a.program.Start(); err != nil {
		a.program = nil
		if a.settings.Namespace && errors.Is(err, unix.EPERM) {
			a.t.Skip("PID namespaces need root:", err)
		}
		a.t.Fatal(err)
	}
}

// restart ends the container and starts it again.
func (a *agent) restart() {
	a.t.Helper()
	a.kill()
	a.boot()
}

// stop ends the agent, as a container runtime does.
func (a *agent) stop() {
	a.t.Helper()
	check.OK(a.t, a.program.Process.Signal(unix.SIGTERM))
	err := a.program.Wait()
	a.program = nil
	a.hangUp()
	if err != nil {
		a.t.Fatalf("the agent ended with %v", err)
	}
}

// kill ends process 1 and everything below it at once, as the end of a container does.
func (a *agent) kill() {
	a.t.Helper()
	if a.program == nil {
		return
	}
	a.hangUp()
	_ = a.program.Process.Signal(unix.SIGSTOP) // It adopts what is killed, and must not record it.
	waiting.Until(a.t, patience, "everything below process 1 has ended", func() bool {
		left := a.below()
		for _, p := range left {
			_ = p.Signal(unix.SIGKILL) // It may have ended.
		}
		return len(left) == 0
	})
	_ = a.program.Process.Kill() // It may have ended.
	_ = a.program.Wait()         // The error says that it was killed.
	a.program = nil
}

func (a *agent) hangUp() {
	if a.client != nil {
		a.client.Close()
		a.client = nil
	}
}

// below are the processes below process 1, but for zombies.
func (a *agent) below() (running []proctree.Process) {
	a.t.Helper()
	all, err := proctree.All()
	check.OK(a.t, err)
	for _, p := range proctree.Below(all, a.program.Process.Pid) {
		if !p.Ended {
			running = append(running, p)
		}
	}
	return running
}

// connected is a client of the manager.
func (a *agent) connected() *rpc.Client {
	a.t.Helper()
	a.must("List", Ask{})
	return a.client
}

// try asks the manager once.
func (a *agent) try(method string, ask Ask) (Reply, error) {
	var reply Reply
	if a.client == nil {
		conn, err := net.Dial("unix", a.settings.Socket)
		if err != nil {
			return reply, err
		}
		a.client = jsonrpc.NewClient(conn)
	}
	err := a.client.Call("Service."+method, ask, &reply)
	if failure := rpc.ServerError(""); err != nil && !errors.As(err, &failure) {
		a.hangUp()
	}
	return reply, err
}

// ask asks until there is an answer: it may be on its way down or up.
func (a *agent) ask(method string, ask Ask) (reply Reply) {
	a.t.Helper()
	var err error
	defer func() {
		if err != nil {
			a.t.Logf("%s: %v", method, err)
		}
	}()
	waiting.Until(a.t, patience, "the agent answers to "+method, func() bool {
		reply, err = a.try(method, ask)
		if failure := rpc.ServerError(""); errors.As(err, &failure) {
			a.t.Fatalf("%s: %v", method, err)
		}
		return err == nil
	})
	return reply
}

// must is ask for what is not refused.
func (a *agent) must(method string, ask Ask) Reply {
	a.t.Helper()
	reply := a.ask(method, ask)
	if reply.Refusal != nil {
		a.t.Fatalf("%s was refused: %s: %s", method, reply.Refusal.Code, reply.Refusal.Message)
	}
	return reply
}

// start runs a command by a key of its own.
func (a *agent) start(command string) protocol.Process {
	a.t.Helper()
	return a.must("Start", Ask{Key: newKey(), Request: protocol.StartRequest{Command: command}}).Process
}

// startHelper runs the test binary as a command with a variable that says what it does.
func (a *agent) startHelper(variable string) protocol.Process {
	a.t.Helper()
	self, err := os.Executable()
	check.OK(a.t, err)
	return a.must("Start", Ask{Key: newKey(), Request: protocol.StartRequest{
		Argv: []string{self}, Env: []string{variable},
	}}).Process
}

// run runs a command to its end, and returns it with its output.
func (a *agent) run(command string) (protocol.Process, string) {
	a.t.Helper()
	p := a.wait(a.start(command).ID)
	return p, a.output(p.ID)
}

func (a *agent) wait(id string) protocol.Process {
	a.t.Helper()
	p := a.must("Wait", Ask{ID: id, Wait: patience}).Process
	if p.State == protocol.Running {
		a.t.Fatalf("%s has not ended: %s", id, p.Command)
	}
	return p
}

// appears waits until there is a command of that id.
func (a *agent) appears(id string) {
	a.t.Helper()
	waiting.Until(a.t, patience, "there is "+id, func() bool { return a.ask("Get", Ask{ID: id}).Refusal == nil })
}

// output is all that is kept of an output from its beginning to the first gap.
func (a *agent) output(id string) string {
	a.t.Helper()
	return string(a.must("Output", Ask{ID: id}).Contents)
}

// until waits for a text in the output of a command.
func (a *agent) until(id, text string) string {
	a.t.Helper()
	var out string
	waiting.Until(a.t, patience, "the output has "+text, func() bool {
		out = a.output(id)
		return strings.Contains(out, text)
	})
	return out
}
