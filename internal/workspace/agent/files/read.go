// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
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
	// defaultLines and defaultBytes are what a reading gets that asks for no number.
	defaultLines, defaultBytes = 2000, 64 << 10
	// leastBytes and mostBytes bound what a reading may ask for: room for one line, and for what any model can take.
	leastBytes, mostBytes = 256, 1 << 20
	// lineBytes is how much of a line is shown. A line of source code has less; a minified file has but one.
	lineBytes = 4 << 10
	// markerBytes is room for what is said of a line that was cut.
	markerBytes = 64
	// countedBytes is the size up to which a file's lines are counted: some tens of milliseconds.
	countedBytes = 64 << 20
	// skippedBytes is how far into a file lines are looked for: some tenths of a second.
	skippedBytes = 256 << 20
	// readBuffer is how much is read at once.
	readBuffer = 64 << 10
)

// Read reads lines of a text file, also of one that is too large to be read as a whole.
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

// looksLikeText reports whether the beginning of a file is text. The last character may be cut in two.
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
	// shown is how many lines were taken, seen the number of the last one that was looked at.
	shown, seen int64
}

func newReading(file *os.File, p place, r *protocol.ReadRequest) *reading {
	g := &reading{place: p, first: max(r.Offset, 1), most: r.Limit, bytes: r.MaxBytes}
	if g.most == 0 {
		g.most = defaultLines
	}
	if g.bytes == 0 {
		g.bytes = defaultBytes
	}
	g.bytes = min(max(g.bytes, leastBytes), mostBytes)
	g.scanner = newLineScanner(file, int(min(lineBytes, g.bytes-markerBytes)))
	return g
}

// lines skips to the first line, takes as many as fit, and counts the rest.
func (g *reading) lines(ctx context.Context) (*protocol.ReadResponse, error) {
	for number := int64(1); g.shown < g.most; number++ {
		wanted := number >= g.first
		line, err := g.scanner.next(ctx, wanted)
		if err != nil {
			return g.end(err, number-1)
		}
		if !wanted {
			continue
		}
		g.seen = number
		if added, err := g.add(line, number); err != nil {
			return nil, err
		} else if !added {
			break
		}
	}
	return g.rest(ctx, g.seen)
}

// end answers when no further line can be read.
func (g *reading) end(err error, lines int64) (*protocol.ReadResponse, error) {
	switch {
	case errors.Is(err, io.EOF):
		return g.response(lines), nil
	case errors.Is(err, errTooFar) && g.shown > 0:
		return g.response(-1), nil
	case errors.Is(err, errTooFar):
		return nil, refuse(protocol.TooLarge, "Line %d of %q is more than %s into the file of %s. Use execute for it.",
			g.first, g.place.asked, size(skippedBytes), size(g.place.info.Size()))
	}
	return nil, err
}

// rest counts the lines that follow, unless that takes long.
func (g *reading) rest(ctx context.Context, lines int64) (*protocol.ReadResponse, error) {
	if g.place.info.Size() > countedBytes {
		return g.response(-1), nil
	}
	more, err := g.scanner.count(ctx)
	switch {
	case errors.Is(err, errTooFar):
		return g.response(-1), nil
	case err != nil:
		return nil, err
	}
	return g.response(lines + more), nil
}

// add takes a line, and reports whether there was room for it.
func (g *reading) add(l line, number int64) (bool, error) {
	if !isText(l.text) {
		return false, refuse(protocol.NotText, "Line %d of %q, which has %s, is no UTF-8 text.", number, g.place.asked,
			size(g.place.info.Size()))
	}
	room := g.bytes - int64(g.out.Len())
	if int64(len(l.text)+len(l.marker)+len(l.ending)) > room && g.shown > 0 {
		return false, nil
	}
	g.out.Write(l.text)
	g.out.WriteString(l.marker)
	g.out.WriteString(l.ending)
	g.shown++
	return true, nil
}

func (g *reading) response(total int64) *protocol.ReadResponse {
	return &protocol.ReadResponse{Content: g.out.String(), FirstLine: g.first, Lines: g.shown, TotalLines: total,
		Size: g.place.info.Size()}
}

// cutMarker says what a line had that was cut.
func cutMarker(length int64) string {
	return fmt.Sprintf(" [... the line is cut: it has %d bytes]", length)
}
