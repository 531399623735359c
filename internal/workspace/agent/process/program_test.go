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
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/protocol"
)

// The test binary is also process 1 and the serving process: it runs itself with these in its environment.
const (
	roleVariable     = "PARLEY_TEST_ROLE"
	settingsVariable = "PARLEY_TEST_SETTINGS"
)

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
		Backoff: retry.Backoff{First: cmp.Or(s.Backoff, time.Millisecond), Max: 10 * time.Millisecond}, Grace: s.Grace,
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
		Directory: s.Directory, StateDir: s.State, Environment: os.Environ(), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), Limits: s.Limits,
		Main: s.Main, MainDir: s.Directory,
	})
	if err != nil {
		return err
	}
	speaking, err := net.Listen("unix", s.Socket+"-speak")
	if err != nil {
		return err
	}
	go speak(manager, speaking)
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

// speak takes a request in the first line of each connection, and speaks to what that starts.
func speak(manager *process.Manager, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			var ask Ask
			first := json.NewDecoder(conn)
			if err := first.Decode(&ask); err != nil {
				panic(err)
			}
			told := Told{}
			session, err := manager.Speak(ask.Key, &ask.Request)
			if errors.As(err, &told.Refusal); err == nil {
				told.Process = session.Process()
			}
			if err := json.NewEncoder(conn).Encode(told); err != nil {
				panic(err)
			}
			if err == nil {
				session.Relay(context.Background(), conn)
			}
			_ = conn.Close()
		}()
	}
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
