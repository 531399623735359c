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
