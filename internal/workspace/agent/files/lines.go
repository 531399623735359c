// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"parley.dev/parley/internal/text/clip"
)

// errTooFar means that as much of a file was read as one request may read.
var errTooFar = errors.New("too far into the file")

// line is a line of a file.
type line struct {
	// text without its ending, as much of it as is kept.
	text []byte
	// marker says how long the line is, if it was cut.
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
	// kept is the beginning of the line that is being read, with its ending if there is room.
	kept []byte
	// last are the last two bytes that were read.
	last [2]byte
}

func newLineScanner(from io.Reader, keep int) *lineScanner {
	return &lineScanner{from: bufio.NewReaderSize(from, readBuffer), keep: keep}
}

// next reads a line, and io.EOF behind the last one. Of a line that is not wanted nothing is kept. What is returned is
// good until the next call.
func (s *lineScanner) next(ctx context.Context, wanted bool) (line, error) {
	s.kept = s.kept[:0]
	for length := int64(0); ; {
		if err := s.goesOn(ctx); err != nil {
			return line{}, err
		}
		piece, err := s.from.ReadSlice('\n')
		length += int64(len(piece))
		s.take(piece, wanted)
		switch {
		case err == nil, errors.Is(err, io.EOF) && length > 0:
			return s.finish(length), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line{}, err
		}
	}
}

// count reads to the end, and counts the lines that it meets.
func (s *lineScanner) count(ctx context.Context) (lines int64, err error) {
	last := byte('\n')
	for {
		if err := s.goesOn(ctx); err != nil {
			return 0, err
		}
		piece, err := s.from.Peek(max(1, s.from.Buffered()))
		if len(piece) > 0 {
			lines += int64(bytes.Count(piece, []byte{'\n'}))
			last = piece[len(piece)-1]
			s.read += int64(len(piece))
			_, err = s.from.Discard(len(piece))
		}
		switch {
		case errors.Is(err, io.EOF) && last != '\n':
			return lines + 1, nil
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return 0, err
		}
	}
}

// goesOn reports why no more is read.
func (s *lineScanner) goesOn(ctx context.Context) error {
	if s.read > skippedBytes {
		return errTooFar
	}
	return ctx.Err()
}

func (s *lineScanner) take(piece []byte, wanted bool) {
	s.read += int64(len(piece))
	for _, b := range piece[max(0, len(piece)-2):] {
		s.last = [2]byte{s.last[1], b}
	}
	if wanted {
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
	ending := l.ending
	if text := length - int64(len(ending)); text <= int64(s.keep) {
		l.text = s.kept[:min(len(s.kept), int(text))]
	} else {
		l.marker = cutMarker(length)
		l.text = []byte(clip.Bytes(string(s.kept), s.keep))
	}
	return l
}
