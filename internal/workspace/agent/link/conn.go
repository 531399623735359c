// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// MaxFrame bounds a message. Linux takes at most 6 MiB of arguments and environment, which base64 makes 8.
	MaxFrame = 10 << 20
	// headerBytes is the length of a frame, and how many descriptors come with it: none or one.
	headerBytes = 5
)

// Conn is one end of the socket. One goroutine may receive while others send.
type Conn struct {
	socket *net.UnixConn
	send   sync.Mutex
	files  []*os.File // received, and not handed out yet
}

// Pair makes a socket: an end for process 1, and one for the serving process to inherit.
func Pair() (*Conn, *os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket for the serving process: %w", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "process 1")
	ours, err := Open(os.NewFile(uintptr(ends[0]), "serving process"))
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// Open takes an end over. No process that is forked later inherits it.
func Open(end *os.File) (*Conn, error) {
	defer func() { _ = end.Close() }() // There is a duplicate.
	socket, err := net.FileConn(end)
	if err != nil {
		return nil, fmt.Errorf("opening the socket of process 1: %w", err)
	}
	local, ok := socket.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("opening the socket of process 1: it is no unix socket"), socket.Close())
	}
	return &Conn{socket: local}, nil
}

// Send sends a message, and a duplicate of the descriptor unless that is negative.
func (c *Conn) Send(m *Message, descriptor int) error {
	frame := make([]byte, headerBytes, 512)
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if len(body) > MaxFrame {
		return fmt.Errorf("a message of %d bytes: %w", len(body), unix.EMSGSIZE)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	var rights []byte
	if descriptor >= 0 {
		frame[4], rights = 1, unix.UnixRights(descriptor)
	}
	frame = append(frame, body...)
	c.send.Lock()
	defer c.send.Unlock()
	// The descriptor goes with the first bytes; the socket may take fewer than all of them at once.
	n, _, err := c.socket.WriteMsgUnix(frame, rights, nil)
	if err == nil && n < len(frame) {
		_, err = c.socket.Write(frame[n:])
	}
	if err != nil {
		return fmt.Errorf("sending a message: %w", err)
	}
	return nil
}

// Receive waits for a message. The file is that of its descriptor, nil if it has none, and the caller's. The error is
// io.EOF when the other side has closed the socket between two messages.
func (c *Conn) Receive() (*Message, *os.File, error) {
	var header [headerBytes]byte
	if err := c.fill(header[:]); err != nil {
		return nil, nil, err
	}
	length := binary.BigEndian.Uint32(header[:])
	if length > MaxFrame || header[4] > 1 {
		return nil, nil, fmt.Errorf("a frame of %d bytes with %d descriptors", length, header[4])
	}
	body := make([]byte, length)
	if err := c.fill(body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, err
	}
	var m Message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, nil, fmt.Errorf("decoding a message: %w", err)
	}
	file, err := c.file(int(header[4]))
	return &m, file, err
}

// fill reads as many bytes as there is room for. What descriptors come with them it keeps.
func (c *Conn) fill(room []byte) error {
	rights := make([]byte, unix.CmsgSpace(4))
	for at := 0; at < len(room); {
		n, m, flags, _, err := c.socket.ReadMsgUnix(room[at:], rights)
		if err == nil {
			err = c.keep(rights[:m], flags)
		}
		if err == nil && n == 0 {
			err = io.EOF
		}
		switch {
		case errors.Is(err, io.EOF) && at > 0:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return fmt.Errorf("receiving a message: %w", err)
		}
		at += n
	}
	return nil
}

func (c *Conn) keep(control []byte, flags int) error {
	if len(control) == 0 && flags&unix.MSG_CTRUNC == 0 {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return fmt.Errorf("parsing control messages: %w", err)
	}
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return fmt.Errorf("parsing descriptors: %w", err)
		}
		for _, d := range descriptors {
			c.files = append(c.files, os.NewFile(uintptr(d), "output"))
		}
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return errors.New("a descriptor was lost: too many files are open")
	}
	return nil
}

// file takes what belongs to a message: as many files as its header tells, of which there is at most one.
func (c *Conn) file(count int) (*os.File, error) {
	if len(c.files) != count {
		return nil, fmt.Errorf("%d descriptors came with a message that has %d", len(c.files), count)
	}
	if count == 0 {
		return nil, nil
	}
	f := c.files[0]
	c.files = nil
	return f, nil
}

// CloseWrite tells the other side that nothing more comes.
func (c *Conn) CloseWrite() error { return c.socket.CloseWrite() }

// Close closes the socket, and what was received and not handed out. Nobody may be receiving.
func (c *Conn) Close() error {
	for _, f := range c.files {
		_ = f.Close() // Nobody knows it.
	}
	c.files = nil
	return c.socket.Close()
}

// Shut ends what waits for the socket, on both sides.
func (c *Conn) Shut() {
	// It fails only if the socket is shut already.
	_ = c.socket.CloseRead()
	_ = c.socket.CloseWrite()
}
