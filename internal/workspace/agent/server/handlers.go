// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/workspace/agent/files"
	"parley.dev/parley/internal/workspace/protocol"
)

func (s *Server) bind(_ *http.Request, binding *protocol.Binding) (*protocol.Binding, error) {
	return binding, s.binding.bind(binding.Chat)
}

// sendFile sends the content of the file that the parameter "path" names.
func (s *Server) sendFile(w http.ResponseWriter, r *http.Request) error {
	content, err := s.files.Content(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	defer content.Close()
	if err := readWithin(w, unbounded); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", content.MediaType)
	h.Set("Content-Length", strconv.FormatInt(content.Size, 10))
	h.Set("Last-Modified", content.Modified.UTC().Format(http.TimeFormat))
	_, _ = io.Copy(slowclient.New(w, writeTimeout), content) // The length tells the client if a part is missing.
	return nil
}

// sendArchive sends the file or directory that the parameter "path" names as a tar archive.
func sendArchive(from *files.Files, log *slog.Logger) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		archive, err := from.Archive(r.URL.Query().Get("path"))
		if err != nil {
			return err
		}
		if err := readWithin(w, unbounded); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/x-tar")
		if err := archive.Write(r.Context(), slowclient.New(w, writeTimeout)); err != nil {
			log.InfoContext(r.Context(), "An archive of files was not sent to its end", "error", err)
			panic(http.ErrAbortHandler) // The client sees that the archive is not complete.
		}
		return nil
	}
}

// writeFile makes the body the content of the file that the parameter "path" names. If there is none, the parameter
// "executable" makes the new one executable.
func (s *Server) writeFile(w http.ResponseWriter, r *http.Request) error {
	content, err := body(w, r, protocol.MaxFileBytes)
	if err != nil {
		return err
	}
	write := s.files.Write
	if r.URL.Query().Has("executable") {
		write = s.files.WriteProgram
	}
	info, err := write(r.Context(), r.Header.Get(protocol.HeaderCall), r.URL.Query().Get("path"), content)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if info.Created {
		status = http.StatusCreated
	}
	return answer(w, status, info)
}

func (s *Server) read(r *http.Request, read *protocol.ReadRequest) (*protocol.ReadResponse, error) {
	return s.files.Read(r.Context(), read)
}

func (s *Server) edit(r *http.Request, edit *protocol.EditRequest) (*protocol.EditResponse, error) {
	return s.files.Edit(r.Context(), r.Header.Get(protocol.HeaderCall), edit)
}

func (s *Server) search(r *http.Request, search *protocol.SearchRequest) (*protocol.SearchResponse, error) {
	return s.files.Search(r.Context(), search)
}

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

// Session is a command whose standard input and output are a connection.
type Session interface {
	// Process is the command.
	Process() protocol.Process
	// Relay connects the client with the command until one of them ends, or ctx is done. Then the command has ended, and
	// the client is closed.
	Relay(ctx context.Context, client io.ReadWriteCloser)
}

// session starts a command, and makes the connection its standard input and output.
func (s *Server) session(w http.ResponseWriter, r *http.Request) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), protocol.Session) {
		return refuse(protocol.BadRequest, "A session needs a connection that is upgraded to %s.", protocol.Session)
	}
	start, err := decode[protocol.StartRequest](w, r)
	if err != nil {
		return err
	}
	session, err := s.options.Processes.Speak(r.PathValue("key"), start)
	if err != nil {
		return err
	}
	client, err := upgrade(w, session.Process().ID)
	if err != nil { // A closed connection ends the command.
		closed, _ := net.Pipe()
		_ = closed.Close()
		client = closed
	}
	session.Relay(r.Context(), client)
	return nil
}

// upgrade answers that the connection is the command's from now on, and returns it.
func upgrade(w http.ResponseWriter, id string) (io.ReadWriteCloser, error) {
	conn, unread, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("upgrading a connection: %w", err)
	}
	client := connection{conn, unread.Reader}
	err = conn.SetReadDeadline(time.Time{})
	if err == nil {
		_, err = fmt.Fprintf(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"+
			"%s: %s\r\n\r\n", protocol.Session, protocol.HeaderProcess, id)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("upgrading a connection: %w", err), conn.Close())
	}
	return client, nil
}

// connection bounds the time in which the client takes each piece.
type connection struct {
	net.Conn
	unread *bufio.Reader
}

// Read implements io.Reader.
func (c connection) Read(p []byte) (int, error) { return c.unread.Read(p) }

// Write implements io.Writer.
func (c connection) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, fmt.Errorf("bounding the time to write: %w", err)
	}
	return c.Conn.Write(p)
}
