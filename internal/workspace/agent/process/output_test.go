// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// written is an output with a pipe to write to it.
type written struct {
	*output
	t     *testing.T
	clock time.Time
	read  int
	write *os.File
}

func newWritten(t *testing.T) *written {
	t.Helper()
	var ends [2]int
	check.OK(t, unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	w := &written{t: t, clock: time.Unix(1000, 0), read: ends[0], write: os.NewFile(uintptr(ends[1]), "pipe")}
	w.output = newOutput(filepath.Join(t.TempDir(), "p1"), func() time.Time { return w.clock })
	check.OK(t, os.Mkdir(w.dir, 0o700))
	t.Cleanup(func() {
		w.close()
		w.write.Close()
		unix.Close(w.read)
	})
	return w
}

// put writes some bytes and has them taken.
func (w *written) put(content []byte) {
	w.t.Helper()
	for len(content) > 0 {
		part := content[:min(len(content), 32<<10)]
		content = content[len(part):]
		if _, err := w.write.Write(part); err != nil {
			w.t.Fatal(err)
		}
		for left := int64(len(part)); left > 0; {
			n, err := w.take(w.read)
			if err != nil || n == 0 {
				w.t.Fatalf("took %d bytes: %v", n, err)
			}
			left -= n
		}
	}
	if _, err := w.take(w.read); !errors.Is(err, unix.EAGAIN) {
		w.t.Fatalf("of nothing: %v", err)
	}
}

// putWithoutDirectory writes some bytes that the disk refuses.
func (w *written) putWithoutDirectory(content []byte) {
	w.t.Helper()
	hidden := w.dir + ".hidden"
	check.OK(w.t, os.Rename(w.dir, hidden))
	w.put(content)
	check.OK(w.t, os.Rename(hidden, w.dir))
}

// all reads what is kept, part by part, with where each begins.
func all(t *testing.T, o *output) (parts map[int64][]byte) {
	t.Helper()
	parts = map[int64][]byte{}
	for from := int64(0); ; {
		r := read1(t, o, from)
		if len(r.content) == 0 {
			return parts
		}
		parts[r.From] = r.content
		from = r.From + int64(len(r.content))
	}
}

type part struct {
	*Output
	content []byte
}

func read1(t *testing.T, o *output, from int64) part {
	t.Helper()
	r := o.read(from)
	defer r.Close()
	content, err := io.ReadAll(r)
	check.OK(t, err)
	return part{Output: r, content: content}
}

func TestOutputCrossesSegmentsWithoutLoss(t *testing.T) {
	t.Parallel()
	w := newWritten(t)
	content := bytes.Repeat([]byte("0123456789abcde\n"), 3<<20/16)
	w.put(content[:segmentBytes-1])
	w.put(content[segmentBytes-1 : segmentBytes+1])
	w.put(content[segmentBytes+1:])
	if got := all(t, w.output); len(got) != 1 || !bytes.Equal(got[0], content) {
		t.Errorf("got %d parts, the first one of %d bytes", len(got), len(got[0]))
	}
	w.write.Close()
	if n, err := w.take(w.read); n != 0 || err != nil {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
}

func TestMiddleOutputExpiresAndRestSurvivesReopen(t *testing.T) {
	t.Parallel()
	w := newWritten(t)
	const size = protocol.HeadBytes + protocol.TailBytes + 5<<20 + 12345
	for at := 0; at < size; at += segmentBytes {
		w.put(bytes.Repeat([]byte{byte('a' + at/segmentBytes)}, min(segmentBytes, size-at)))
	}
	expect := func(o *output) {
		t.Helper()
		parts := all(t, o)
		const tail = 6 << 20
		if len(parts) != 2 || len(parts[0]) != protocol.HeadBytes || len(parts[tail]) != size-tail ||
			parts[tail][0] != 'g' || parts[tail][size-tail-1] != 'v' {
			t.Errorf("there are %d parts", len(parts))
		}
		if total, dropped, note := o.size(); total != size || dropped != tail-protocol.HeadBytes || note != "" {
			t.Errorf("%d of %d bytes are not kept: %s", dropped, total, note)
		}
		if r := read1(t, o, 3<<20); r.From != tail {
			t.Errorf("from within the gap: %d", r.From)
		}
	}
	expect(w.output)
	w.close()
	again, err := openOutput(w.dir, w.now, 0)
	check.OK(t, err)
	expect(again)
}

func TestDiskErrorLeavesOutputGapUntilWritesSucceed(t *testing.T) {
	t.Parallel()
	w := newWritten(t)
	w.put([]byte("before"))
	w.close()
	w.putWithoutDirectory([]byte("lost"))
	w.put([]byte("lost too"))
	w.clock = w.clock.Add(refusalPause)
	w.put([]byte("after"))
	parts := all(t, w.output)
	if len(parts) != 2 || string(parts[0]) != "before" || string(parts[18]) != "after" {
		t.Errorf("got %v", parts)
	}
	if total, dropped, note := w.size(); total != 23 || dropped != 12 ||
		note != "12 bytes of output could not be stored: no such file or directory" {
		t.Errorf("%d of %d bytes are not kept: %s", dropped, total, note)
	}
	w.close()
	again, err := openOutput(w.dir, w.now, 0)
	check.OK(t, err)
	if got := all(t, again); len(got) != 2 || string(got[18]) != "after" {
		t.Errorf("found again: %v", got)
	}
}

func TestRepeatedDiskErrorsStopOutputWrites(t *testing.T) {
	t.Parallel()
	w := newWritten(t)
	for range 3 * maxRefusals {
		w.put([]byte("kept"))
		w.close()
		w.putWithoutDirectory([]byte("lost"))
		w.clock = w.clock.Add(refusalPause)
	}
	if n := len(all(t, w.output)); n != maxRefusals {
		t.Errorf("there are %d parts", n)
	}
}

func TestReaderOfExpiredOutputEndsAtGap(t *testing.T) {
	t.Parallel()
	w := newWritten(t)
	w.put(make([]byte, 3*segmentBytes))
	r := w.output.read(0)
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, 100); err != nil {
		t.Fatal(err)
	}
	w.put(make([]byte, protocol.TailBytes+2*segmentBytes))
	if n, err := io.Copy(io.Discard, r); n != segmentBytes-100 || err != nil {
		t.Errorf("%d bytes more: %v", n, err)
	}
	if next := read1(t, w.output, segmentBytes); next.From != 5*segmentBytes {
		t.Errorf("then from %d on", next.From)
	}
}

func TestFifoReplacingOutputSegmentDoesNotBlock(t *testing.T) {
	t.Parallel()
	w := newWritten(t)
	w.put([]byte("something"))
	w.close()
	name := w.name(segment{})
	next := w.name(segment{from: int64(len("something"))})
	check.OK(t, errors.Join(os.Remove(name), unix.Mkfifo(name, 0o600), unix.Mkfifo(next, 0o600)))
	if _, err := w.output.read(0).Read(make([]byte, 10)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	w.put([]byte("more"))
	if _, dropped, note := w.size(); dropped != 4 || note == "" {
		t.Errorf("%d bytes are not kept: %s", dropped, note)
	}
}
