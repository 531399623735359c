// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
)

// Session is a command that is spoken to.
type Session interface {
	// Process is the command.
	Process() protocol.Process
	// Relay has the client speak to the command until one of them ends that, or ctx is done; then the command has ended,
	// and the client is closed.
	Relay(ctx context.Context, client io.ReadWriteCloser)
}

// session starts a command, and makes the connection its standard input and output.
func (s *Server) session(w http.ResponseWriter, r *http.Request) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), protocol.Session) {
		return refuse(protocol.BadRequest, "A session needs a connection that is upgraded to %s.", protocol.Session)
	}
	asked, err := decode[protocol.StartRequest](w, r)
	if err != nil {
		return err
	}
	started, err := s.options.Processes.Speak(r.PathValue("key"), asked)
	if err != nil {
		return err
	}
	client, err := takeOver(w, started.Process().ID)
	if err != nil { // The client has gone.
		client = gone{}
	}
	started.Relay(r.Context(), client)
	return nil
}

// takeOver answers that the connection is the command's from now on, and makes it that.
func takeOver(w http.ResponseWriter, id string) (io.ReadWriteCloser, error) {
	conn, unread, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("taking a connection over: %w", err)
	}
	client := connection{conn, unread.Reader}
	err = conn.SetReadDeadline(time.Time{})
	if err == nil {
		_, err = fmt.Fprintf(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"+
			"%s: %s\r\n\r\n", protocol.Session, protocol.HeaderProcess, id)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("taking a connection over: %w", err), conn.Close())
	}
	return client, nil
}

// connection gives the client some time for each piece that it takes.
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

// gone is a client that has gone.
type gone struct{}

// Read implements io.Reader.
func (gone) Read([]byte) (int, error) { return 0, io.EOF }

// Write implements io.Writer.
func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Close implements io.Closer.
func (gone) Close() error { return nil }
