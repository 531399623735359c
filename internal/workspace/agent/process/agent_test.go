// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/testing/waiting"
	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/protocol"
)

// The test binary is also process 1 and the serving process: it runs itself with these in its environment.
const (
	roleVariable     = "PARLEY_TEST_ROLE"
	settingsVariable = "PARLEY_TEST_SETTINGS"
)

// patience is for what takes milliseconds where nothing else runs.
const patience = 30 * time.Second

// settings are what the processes of a test are told.
type settings struct {
	Directory, State, Socket string
	Limits                   process.Limits
	Main                     []string
	Grace                    time.Duration
	// Backoff is how long a serving process that has died is waited with; 0: not for long.
	Backoff time.Duration
	// Namespace has process 1 be that of a PID namespace.
	Namespace bool
	// StateBytes is the size of the file system of the state directory, in a namespace; 0: it is no one of its own.
	StateBytes int
}

func TestMain(m *testing.M) {
	var s settings
	role := os.Getenv(roleVariable)
	if os.Getenv(headlessVariable) != "" {
		headless()
	}
	if who := os.Getenv(listenerVariable); who != "" {
		listen(who)
	}
	if role == "" {
		os.Exit(m.Run())
	}
	err := json.Unmarshal([]byte(os.Getenv(settingsVariable)), &s)
	if err == nil && role == "init" {
		err = runInit(s)
	} else if err == nil {
		err = runServing(s)
	}
	if err != nil {
		slog.Error(role, "error", err)
		os.Exit(1)
	}
}

func runInit(s settings) error {
	if s.Namespace {
		if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
			return err
		}
	}
	if s.StateBytes > 0 {
		if err := errors.Join(os.Mkdir(s.State, 0o700),
			unix.Mount("tmpfs", s.State, "tmpfs", 0, fmt.Sprint("size=", s.StateBytes))); err != nil {
			return err
		}
	}
	os.Setenv(roleVariable, "serve")
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	i := &initproc.Init{
		Path: "/proc/self/exe", Argv: []string{"serving"}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		MinBackoff: cmp.Or(s.Backoff, time.Millisecond), MaxBackoff: 10 * time.Millisecond, Grace: s.Grace,
	}
	return i.Run(ctx)
}

func runServing(s settings) error {
	if err := initproc.Conceal(); err != nil {
		return err
	}
	initproc.SpareThreads(8)
	conn, err := link.Open(os.NewFile(initproc.ServingDescriptor, "process 1"))
	if err != nil {
		return err
	}
	manager, err := process.Open(conn, process.Options{
		Directory: s.Directory, StateDir: s.State, Environment: os.Environ(), InitPID: os.Getppid(), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), Limits: s.Limits,
		Main: s.Main, MainDir: s.Directory,
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", s.Socket)
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.Register(&Door{Manager: manager}); err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go server.ServeCodec(jsonrpc.NewServerCodec(conn))
		}
	}()
	return manager.Run()
}

// Door is how a test reaches the manager.
type Door struct{ Manager *process.Manager }

// Ask is what a test asks.
type Ask struct {
	ID, Key string
	Request protocol.StartRequest
	Signal  protocol.Signal
	From    int64
	Limit   int64
	Wait    time.Duration
}

// Told is what it is told.
type Told struct {
	Process  protocol.Process
	List     []protocol.Process
	Refusal  *protocol.Error
	PID      int
	Shell    string
	Running  int
	From     int64
	Total    int64
	Contents []byte
}

func (d *Door) refused(told *Told, err error) error {
	if err != nil && !errors.As(err, &told.Refusal) {
		return err
	}
	return nil
}

func (d *Door) Start(ask Ask, told *Told) (err error) {
	told.Process, err = d.Manager.Start(context.Background(), ask.Key, &ask.Request)
	return d.refused(told, err)
}

func (d *Door) Get(ask Ask, told *Told) (err error) {
	told.Process, err = d.Manager.Get(ask.ID)
	return d.refused(told, err)
}

func (d *Door) Wait(ask Ask, told *Told) (err error) {
	ctx, stop := context.WithTimeout(context.Background(), ask.Wait)
	defer stop()
	told.Process, err = d.Manager.Wait(ctx, ask.ID)
	return d.refused(told, err)
}

func (d *Door) WaitOutput(ask Ask, told *Told) (err error) {
	ctx, stop := context.WithTimeout(context.Background(), ask.Wait)
	defer stop()
	told.Process, err = d.Manager.WaitOutput(ctx, ask.ID, ask.From)
	return d.refused(told, err)
}

func (d *Door) Output(ask Ask, told *Told) error {
	out, err := d.Manager.Output(ask.ID, ask.From)
	if err != nil {
		return d.refused(told, err)
	}
	defer out.Close()
	told.From, told.Total = out.From, out.Total
	if ask.Limit == 0 {
		ask.Limit = 64 << 20
	}
	told.Contents, err = io.ReadAll(io.LimitReader(out, ask.Limit))
	return err
}

func (d *Door) Signal(ask Ask, told *Told) (err error) {
	told.Process, err = d.Manager.Signal(ask.ID, ask.Signal)
	return d.refused(told, err)
}

func (d *Door) Look(_ Ask, told *Told) error {
	told.List, told.PID = d.Manager.List(), os.Getpid()
	told.Shell, told.Running = d.Manager.Info()
	return nil
}

// agent is a workspace's process 1, with its serving process, and what they keep.
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
	if err := os.Mkdir(a.settings.Directory, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, change := range with {
		change(&a.settings)
	}
	t.Cleanup(a.kill)
	a.boot()
	return a
}

func inNamespace(s *settings) { s.Namespace = true }

// boot starts process 1, as the start of a container does.
func (a *agent) boot() {
	a.t.Helper()
	raw, err := json.Marshal(a.settings)
	if err != nil {
		a.t.Fatal(err)
	}
	a.program = exec.Command("/proc/self/exe")
	a.program.Dir = "/"
	a.program.Env = append(os.Environ(), roleVariable+"=init", settingsVariable+"="+string(raw))
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

// crash kills the serving process.
func (a *agent) crash() {
	a.t.Helper()
	if err := a.serving().Signal(unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		a.t.Fatal(err)
	}
}

// restart ends the container and starts it again.
func (a *agent) restart() {
	a.t.Helper()
	a.kill()
	a.boot()
}

// stop tells process 1 to end, as a container runtime does.
func (a *agent) stop() {
	a.t.Helper()
	if err := a.program.Process.Signal(unix.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	a.ends()
}

// ends waits until process 1 has ended.
func (a *agent) ends() {
	a.t.Helper()
	if err := a.program.Wait(); err != nil {
		a.t.Fatalf("process 1 ended with %v", err)
	}
	a.program = nil
	a.hangUp()
}

// hasEnded reports whether process 1 has ended, and nobody has waited for it.
func (a *agent) hasEnded() bool {
	a.t.Helper()
	all, err := proctree.All()
	if err != nil {
		a.t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(p proctree.Process) bool { return p.PID == a.program.Process.Pid && p.Ended })
}

// kill ends process 1 and everything below it at once, as the end of a container does.
func (a *agent) kill() {
	a.t.Helper()
	if a.program == nil {
		return
	}
	a.hangUp()
	_ = a.program.Process.Signal(unix.SIGSTOP) // It may have ended.
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
	if err != nil {
		a.t.Fatal(err)
	}
	for _, p := range proctree.Below(all, a.program.Process.Pid) {
		if !p.Ended {
			running = append(running, p)
		}
	}
	return running
}

// serving is the serving process.
func (a *agent) serving() (found proctree.Process) {
	a.t.Helper()
	waiting.Until(a.t, patience, "there is a serving process", func() bool {
		for _, p := range a.below() {
			words, err := os.ReadFile(filepath.Join("/proc", itoa(p.PID), "cmdline"))
			if err == nil && string(words) == "serving\x00" && p.Parent == a.program.Process.Pid {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

// try asks the manager once.
func (a *agent) try(method string, ask Ask) (Told, error) {
	var told Told
	if a.client == nil {
		conn, err := net.Dial("unix", a.settings.Socket)
		if err != nil {
			return told, err
		}
		a.client = jsonrpc.NewClient(conn)
	}
	err := a.client.Call("Door."+method, ask, &told)
	if failure := rpc.ServerError(""); err != nil && !errors.As(err, &failure) {
		a.hangUp()
	}
	return told, err
}

// ask asks until there is an answer: the serving process may be on its way down or up.
func (a *agent) ask(method string, ask Ask) (told Told) {
	a.t.Helper()
	var err error
	defer func() {
		if err != nil {
			a.t.Logf("%s: %v", method, err)
		}
	}()
	waiting.Until(a.t, patience, "the agent answers to "+method, func() bool {
		told, err = a.try(method, ask)
		if failure := rpc.ServerError(""); errors.As(err, &failure) {
			a.t.Fatalf("%s: %v", method, err)
		}
		return err == nil
	})
	return told
}

// must is ask for what is not refused.
func (a *agent) must(method string, ask Ask) Told {
	a.t.Helper()
	told := a.ask(method, ask)
	if told.Refusal != nil {
		a.t.Fatalf("%s was refused: %s: %s", method, told.Refusal.Code, told.Refusal.Message)
	}
	return told
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
	if err != nil {
		a.t.Fatal(err)
	}
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
