// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
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
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/protocol"
)

// settingsVariable makes the test binary an agent with these settings.
const settingsVariable = "PARLEY_TEST_SETTINGS"

// settings are those of an agent.
type settings struct {
	Directory, State, Socket string
	Limits                   process.Limits
	Main                     []string
	Grace                    time.Duration
	// Namespace makes it process 1 of a PID namespace.
	Namespace bool
	// StateBytes is the size of the file system of the state directory, in a namespace; 0: it is no one of its own.
	StateBytes int
}

func TestMain(m *testing.M) {
	if os.Getenv(headlessVariable) != "" {
		headless()
	}
	if who := os.Getenv(listenerVariable); who != "" {
		listenForSignals(who)
	}
	raw := os.Getenv(settingsVariable)
	if raw == "" {
		os.Exit(m.Run())
	}
	var s settings
	if err := errors.Join(json.Unmarshal([]byte(raw), &s), runAgent(s)); err != nil {
		slog.Error("the agent failed", "error", err)
		os.Exit(1)
	}
}

func runAgent(s settings) error {
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
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	stopped, err := initproc.Stopped(log)
	if err != nil {
		return err
	}
	i, err := initproc.New(time.Now, log)
	if err != nil {
		return err
	}
	manager, err := process.Open(stopped, process.Options{
		Directory: s.Directory, StateDir: s.State, Environment: os.Environ(), Init: i, Grace: s.Grace, Now: time.Now,
		Log: log, Limits: s.Limits, Main: s.Main, MainDir: s.Directory,
	})
	if err != nil {
		return err
	}
	if err := listen(s.Socket+"-speak", func(conn net.Conn) { speak(manager, conn) }); err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.Register(&Service{Manager: manager}); err != nil {
		return err
	}
	err = listen(s.Socket, func(conn net.Conn) { server.ServeCodec(jsonrpc.NewServerCodec(conn)) })
	if err != nil {
		return err
	}
	manager.Run(stopped)
	return nil
}

// listen serves each connection to a socket.
func listen(socket string, serve func(net.Conn)) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return nil
}

// speak takes a request in the first line of a connection, and speaks to what that starts.
func speak(manager *process.Manager, conn net.Conn) {
	var ask Ask
	first := json.NewDecoder(conn)
	if err := first.Decode(&ask); err != nil {
		panic(err)
	}
	reply := Reply{}
	session, err := manager.Speak(ask.Key, &ask.Request)
	if errors.As(err, &reply.Refusal); err == nil {
		reply.Process = session.Process()
	}
	if err := json.NewEncoder(conn).Encode(reply); err != nil {
		panic(err)
	}
	if err == nil {
		session.Relay(context.Background(), conn)
	}
	_ = conn.Close()
}

// Service serves the manager to a test.
type Service struct{ Manager *process.Manager }

// Ask is a request of a test.
type Ask struct {
	ID, Key string
	Request protocol.StartRequest
	Signal  protocol.Signal
	From    int64
	Limit   int64
	Wait    time.Duration
}

// Reply is the answer.
type Reply struct {
	Process  protocol.Process
	List     []protocol.Process
	Refusal  *protocol.Error
	Shell    string
	Running  int
	From     int64
	Total    int64
	Contents []byte
}

func (d *Service) refused(reply *Reply, err error) error {
	if err != nil && !errors.As(err, &reply.Refusal) {
		return err
	}
	return nil
}

func (d *Service) Start(ask Ask, reply *Reply) (err error) {
	reply.Process, err = d.Manager.Start(context.Background(), ask.Key, &ask.Request)
	return d.refused(reply, err)
}

func (d *Service) Get(ask Ask, reply *Reply) (err error) {
	reply.Process, err = d.Manager.Get(ask.ID)
	return d.refused(reply, err)
}

func (d *Service) Wait(ask Ask, reply *Reply) (err error) {
	ctx, stop := context.WithTimeout(context.Background(), ask.Wait)
	defer stop()
	reply.Process, err = d.Manager.Wait(ctx, ask.ID)
	return d.refused(reply, err)
}

func (d *Service) WaitOutput(ask Ask, reply *Reply) (err error) {
	ctx, stop := context.WithTimeout(context.Background(), ask.Wait)
	defer stop()
	reply.Process, err = d.Manager.WaitOutput(ctx, ask.ID, ask.From)
	return d.refused(reply, err)
}

func (d *Service) Output(ask Ask, reply *Reply) error {
	out, err := d.Manager.Output(ask.ID, ask.From)
	if err != nil {
		return d.refused(reply, err)
	}
	defer out.Close()
	reply.From, reply.Total = out.From, out.Total
	if ask.Limit == 0 {
		ask.Limit = 64 << 20
	}
	reply.Contents, err = io.ReadAll(io.LimitReader(out, ask.Limit))
	return err
}

func (d *Service) Signal(ask Ask, reply *Reply) (err error) {
	reply.Process, err = d.Manager.Signal(ask.ID, ask.Signal)
	return d.refused(reply, err)
}

func (d *Service) List(_ Ask, reply *Reply) error {
	reply.List = d.Manager.List()
	reply.Shell, reply.Running = d.Manager.Info()
	return nil
}
