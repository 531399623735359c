// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// defaultLines and defaultBytes are the limits of a request that sets none.
	defaultLines, defaultBytes = 2000, 64 << 10
	// minBytes and maxBytes bound the limit of a request: room for one line, and for what any model can take.
	minBytes, maxBytes = 256, 1 << 20
	// lineBytes is how much of a line is shown. A line of source code has less; a minified file has one line.
	lineBytes = 4 << 10
	// markerBytes is room for the marker of a cut line.
	markerBytes = 64
	// countedBytes is the size up to which a file's lines are counted: some tens of milliseconds.
	countedBytes = 64 << 20
	// scannedBytes is how far into a file lines are searched: some tenths of a second.
	scannedBytes = 256 << 20
	// readBuffer is how much is read at once.
	readBuffer = 64 << 10
)

// Read reads lines of a text file of any size.
func (f *Files) Read(ctx context.Context, r *protocol.ReadRequest) (*protocol.ReadResponse, error) {
	if r.Offset < 0 || r.Limit < 0 || r.MaxBytes < 0 {
		return nil, refuse(protocol.BadRequest, "offset, limit and maxBytes must not be negative.")
	}
	file, p, err := f.dir.open(r.Path)
	if err != nil {
		return nil, err
	}
	defer closeRead(file)
	head, err := headOf(file)
	if err != nil {
		return nil, explain(r.Path, err)
	}
	if !looksLikeText(head) {
		return nil, notText(r.Path, head, p.info.Size())
	}
	out, err := newReading(file, p, r).lines(ctx)
	if err != nil {
		return nil, explain(r.Path, err)
	}
	return out, nil
}

// looksLikeText reports whether the beginning of a file is text. Its last character may be incomplete.
func looksLikeText(head []byte) bool {
	if len(head) == sniffed {
		head = []byte(clip.Bytes(string(head), sniffed-utf8.UTFMax))
	}
	return isText(head)
}

// reading is one request for lines.
type reading struct {
	scanner            *lineScanner
	place              place
	first, most, bytes int64
	out                strings.Builder
	// shown is the number of lines in out.
	shown int64
}

func newReading(file *os.File, p place, r *protocol.ReadRequest) *reading {
	bytes := min(max(cmp.Or(r.MaxBytes, defaultBytes), minBytes), maxBytes)
	return &reading{place: p, first: max(r.Offset, 1), most: cmp.Or(r.Limit, defaultLines), bytes: bytes,
		scanner: newLineScanner(file, int(min(lineBytes, bytes-markerBytes)))}
}

// lines skips to the first line, takes as many as fit, and counts the rest unless that takes long.
func (g *reading) lines(ctx context.Context) (*protocol.ReadResponse, error) {
	isFull := false
	for number := int64(1); ; number++ {
		if isFull && g.place.info.Size() > countedBytes {
			return g.response(-1), nil
		}
		isShown := number >= g.first && !isFull
		line, err := g.scanner.next(ctx, isShown)
		switch {
		case err != nil:
			return g.end(err, number-1)
		case isShown:
			if isFull, err = g.add(line, number); err != nil {
				return nil, err
			}
		}
	}
}

// end is the response when no further line can be read.
func (g *reading) end(err error, lines int64) (*protocol.ReadResponse, error) {
	switch {
	case errors.Is(err, io.EOF):
		return g.response(lines), nil
	case errors.Is(err, errTooFar) && g.shown > 0:
		return g.response(-1), nil
	case errors.Is(err, errTooFar):
		return nil, refuse(protocol.TooLarge, "Line %d of %q is more than %s into the file of %s. Use execute for it.",
			g.first, g.place.asked, size(scannedBytes), size(g.place.info.Size()))
	}
	return nil, err
}

// add adds a line if there is room for it, and reports whether the response is full.
func (g *reading) add(l line, number int64) (isFull bool, err error) {
	if !isText(l.text) {
		return false, refuse(protocol.NotText, "Line %d of %q, which has %s, is no UTF-8 text.", number, g.place.asked,
			size(g.place.info.Size()))
	}
	room := g.bytes - int64(g.out.Len())
	if int64(len(l.text)+len(l.marker)+len(l.ending)) > room && g.shown > 0 {
		return true, nil
	}
	g.out.Write(l.text)
	g.out.WriteString(l.marker)
	g.out.WriteString(l.ending)
	g.shown++
	return g.shown == g.most, nil
}

func (g *reading) response(total int64) *protocol.ReadResponse {
	return &protocol.ReadResponse{Content: g.out.String(), FirstLine: g.first, Lines: g.shown, TotalLines: total,
		Size: g.place.info.Size()}
}

// errTooFar means that a request has read the limit of one file.
var errTooFar = errors.New("too far into the file")

// line is a line of a file.
type line struct {
	// text without its ending, cut if it is long.
	text []byte
	// marker tells how long a cut line is.
	marker string
	// ending is "\n", "\r\n", or nothing at the end of the file.
	ending string
}

// lineScanner reads lines of any length within bounded memory.
type lineScanner struct {
	from *bufio.Reader
	// keep is how many bytes of a line are kept.
	keep int
	// read is how many bytes were read.
	read int64
	// kept is the beginning of the current line, with its ending if there is room.
	kept []byte
	// last are the last two bytes that were read.
	last [2]byte
}

func newLineScanner(from io.Reader, keep int) *lineScanner {
	return &lineScanner{from: bufio.NewReaderSize(from, readBuffer), keep: keep}
}

// next reads a line, and returns io.EOF after the last one. A line that is not shown has no text. The result is valid
// until the next call.
func (s *lineScanner) next(ctx context.Context, isShown bool) (line, error) {
	s.kept = s.kept[:0]
	for length := int64(0); ; {
		if s.read > scannedBytes {
			return line{}, errTooFar
		}
		if err := ctx.Err(); err != nil {
			return line{}, err
		}
		piece, err := s.from.ReadSlice('\n')
		length += int64(len(piece))
		s.take(piece, isShown)
		switch {
		case err == nil, errors.Is(err, io.EOF) && length > 0:
			return s.finish(length), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line{}, err
		}
	}
}

func (s *lineScanner) take(piece []byte, isShown bool) {
	s.read += int64(len(piece))
	for _, b := range piece[max(0, len(piece)-2):] {
		s.last = [2]byte{s.last[1], b}
	}
	if isShown {
		// Two more than are kept, for the ending.
		s.kept = append(s.kept, piece[:min(len(piece), s.keep+2-len(s.kept))]...)
	}
}

func (s *lineScanner) finish(length int64) line {
	var l line
	switch {
	case s.last == [2]byte{'\r', '\n'}:
		l.ending = "\r\n"
	case s.last[1] == '\n':
		l.ending = "\n"
	}
	if text := length - int64(len(l.ending)); text <= int64(s.keep) {
		l.text = s.kept[:min(len(s.kept), int(text))]
	} else {
		l.marker = fmt.Sprintf(" [... the line is cut: it has %d bytes]", length)
		l.text = []byte(clip.Bytes(string(s.kept), s.keep))
	}
	return l
}
