// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair returns both ends.
func pair(t testing.TB) (*Conn, *Conn) {
	t.Helper()
	ours, end, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := Open(end)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
	})
	return ours, theirs
}

func TestMessagesArriveInOrderWithTheirDescriptors(t *testing.T) {
	ours, theirs := pair(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	sent := []Message{
		{Hello: &Hello{Boot: "b", Since: time.Unix(1, 0).UTC(), Commands: 1}},
		{Command: &Command{ID: "p1", Supervisor: 7, StartedAt: time.Unix(2, 0).UTC(),
			Exit: &Exit{ID: "p1", Status: 9, At: time.Unix(3, 0).UTC()}}},
		{Seq: 4, Start: &Start{ID: "p2", Path: []byte("/\xff"), Dir: []byte("/"), Env: [][]byte{},
			Argv: [][]byte{[]byte("\xfe"), bytes.Repeat([]byte("x"), 5<<20)}}},
		{Seq: 5, Reply: &Reply{Errno: unix.ENOENT}},
		{Done: &Done{Exit: Exit{ID: "p2", Status: 9, At: time.Unix(3, 0).UTC()}, Orphaned: true}},
		{Forget: "p3"},
		{Stopping: true},
	}
	go func() {
		for i := range sent {
			descriptor := -1
			if sent[i].Command != nil {
				descriptor = int(read.Fd())
			}
			if err := ours.Send(&sent[i], descriptor); err != nil {
				t.Error(err)
			}
		}
		if err := ours.CloseWrite(); err != nil {
			t.Error(err)
		}
	}()
	for i := range sent {
		m, file, err := theirs.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*m, sent[i]) || (file != nil) != (m.Command != nil) {
			t.Errorf("message %d is %+v, with file %v", i, m, file)
		}
		if file != nil {
			isDuplicate(t, file, write)
		}
	}
	if _, _, err := theirs.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// isDuplicate checks that what is written to a pipe comes out of the file, which no program inherits.
func isDuplicate(t *testing.T, file, write *os.File) {
	t.Helper()
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("it is inherited: %v", err)
	}
	if _, err := write.WriteString("through the pipe"); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if got, err := io.ReadAll(file); err != nil || string(got) != "through the pipe" {
		t.Errorf("got %q: %v", got, err)
	}
	file.Close()
}

func TestWhatIsNoMessageIsAnError(t *testing.T) {
	for _, c := range []struct{ name, raw, says string }{
		{"nothing", "", "EOF"},
		{"half a header", "\x00\x00", "unexpected EOF"},
		{"half a message", "\x00\x00\x00\x05\x00{", "unexpected EOF"},
		{"no JSON", "\x00\x00\x00\x02\x00{{", "decoding"},
		{"too long", "\x7f\x00\x00\x00\x00", "a frame of"},
		{"more descriptors than may be", "\x00\x00\x00\x02\x02{}", "2 descriptors"},
		{"a descriptor that does not come", "\x00\x00\x00\x02\x01{}", "0 descriptors came"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := receiveAll(t, []byte(c.raw)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestUnexpectedDescriptorIsRejectedAndClosed(t *testing.T) {
	ours, theirs := pair(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	rights := unix.UnixRights(int(read.Fd()))
	if _, _, err := ours.socket.WriteMsgUnix([]byte("\x00\x00\x00\x02\x00{}"), rights, nil); err != nil {
		t.Fatal(err)
	}
	read.Close()
	if _, _, err := theirs.Receive(); err == nil {
		t.Error("it was taken")
	}
	theirs.Close()
	if _, err := write.WriteString("x"); !errors.Is(err, unix.EPIPE) {
		t.Errorf("somebody still has it: %v", err)
	}
}

func TestOversizedMessageIsNotSent(t *testing.T) {
	ours, _ := pair(t)
	err := ours.Send(&Message{Start: &Start{Path: make([]byte, MaxFrame)}}, -1)
	if !errors.Is(err, unix.EMSGSIZE) {
		t.Errorf("got %v", err)
	}
}

// receiveAll receives what is written to a socket.
func receiveAll(t testing.TB, raw []byte) (messages []*Message, err error) {
	t.Helper()
	ours, theirs := pair(t)
	go func() {
		_, _ = (net.Conn)(ours.socket).Write(raw) // It fails once the other side is closed.
		_ = ours.CloseWrite()
	}()
	for {
		m, file, err := theirs.Receive()
		if file != nil {
			t.Fatal("a file came of bytes")
		}
		if err != nil {
			theirs.Shut()
			return messages, err
		}
		messages = append(messages, m)
	}
}

func FuzzReceive(f *testing.F) {
	for _, m := range []Message{
		{Hello: &Hello{Boot: "b"}}, {Seq: 1, Start: &Start{ID: "p1", Argv: [][]byte{{255}}}}, {Forget: "p1"},
	} {
		ours, theirs := pair(f)
		if err := ours.Send(&m, -1); err != nil {
			f.Fatal(err)
		}
		raw := make([]byte, 4096)
		n, err := (net.Conn)(theirs.socket).Read(raw)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw[:n])
	}
	f.Add(binary.BigEndian.AppendUint32(nil, MaxFrame))
	f.Fuzz(func(t *testing.T, raw []byte) {
		messages, err := receiveAll(t, raw)
		if err == nil {
			t.Fatal("there is no end")
		}
		for _, m := range messages { // What can be received can be sent.
			ours, theirs := pair(t)
			go func() {
				if err := ours.Send(m, -1); err != nil {
					t.Error(err)
				}
			}()
			if got, _, err := theirs.Receive(); err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("sent %+v, got %+v: %v", m, got, err)
			}
		}
	})
}
