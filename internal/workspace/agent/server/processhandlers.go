// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strconv"

	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/workspace/protocol"
)

// Processes are the commands of a workspace. Their errors are *protocol.Error.
type Processes interface {
	// Start starts a command, or returns the one that was started with the key before.
	Start(ctx context.Context, key string, r *protocol.StartRequest) (protocol.Process, error)
	// Speak starts a command whose standard input and output are a session.
	Speak(key string, r *protocol.StartRequest) (Session, error)
	// List returns the commands, the newest first.
	List() []protocol.Process
	// Wait returns one when it has ended, or as it is when ctx is done.
	Wait(ctx context.Context, id string) (protocol.Process, error)
	// Output opens what is kept of a command's output from an offset on.
	Output(id string, from int64) (*Output, error)
	// WaitOutput returns when there is output behind an offset, the command has ended, or ctx is done.
	WaitOutput(ctx context.Context, id string, from int64) (protocol.Process, error)
	// Signal sends a signal to a command.
	Signal(id string, s protocol.Signal) (protocol.Process, error)
	// Info returns the shell, empty if there is none, and how many commands run.
	Info() (shell string, running int)
}

// Output is what is kept of a command's output.
type Output struct {
	// From is the offset of the first byte, Total how much the command has written so far.
	From, Total int64
	// ReadCloser reads what is kept.
	io.ReadCloser
}

func (s *Server) info(w http.ResponseWriter, _ *http.Request) error {
	shell, running := s.options.Processes.Info()
	return answer(w, http.StatusOK, protocol.Info{OS: runtime.GOOS, Arch: runtime.GOARCH, Directory: s.options.Directory,
		Shell: shell, Running: running})
}

func (s *Server) startProcess(r *http.Request, start *protocol.StartRequest) (protocol.Process, error) {
	key := r.PathValue("key")
	if !protocol.ValidKey(key) {
		return protocol.Process{}, refuse(protocol.BadRequest, "%.60q cannot be a key.", key)
	}
	return s.options.Processes.Start(r.Context(), key, start)
}

func (s *Server) listProcesses(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, protocol.ProcessList{Processes: s.options.Processes.List()})
}

func (s *Server) getProcess(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel, err := waitContext(w, r)
	if err != nil {
		return err
	}
	defer cancel()
	process, err := s.options.Processes.Wait(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, process)
}

func (s *Server) signal(r *http.Request, signal *protocol.SignalRequest) (protocol.Process, error) {
	return s.options.Processes.Signal(r.PathValue("id"), signal.Signal)
}

// output sends what a command has written, from an offset on.
func (s *Server) output(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	from, err := number(r, "from")
	if err != nil {
		return err
	}
	limit, err := number(r, "limit")
	if err != nil {
		return err
	}
	ctx, cancel, err := waitContext(w, r)
	if err != nil {
		return err
	}
	defer cancel()
	if _, err := s.options.Processes.WaitOutput(ctx, id, from); err != nil {
		return err
	}
	out, err := s.options.Processes.Output(id, from)
	if err != nil {
		return err
	}
	defer out.Close()
	var content io.Reader = out
	if limit > 0 {
		content = io.LimitReader(out, limit)
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(protocol.HeaderOutputFrom, strconv.FormatInt(out.From, 10))
	h.Set(protocol.HeaderOutputTotal, strconv.FormatInt(out.Total, 10))
	w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(slowclient.New(w, writeTimeout), content); err != nil {
		panic(http.ErrAbortHandler) // Otherwise the client takes a part for the whole.
	}
	return nil
}
