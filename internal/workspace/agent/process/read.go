// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io"
	"os"

	"parley.dev/parley/internal/workspace/agent/durable"
)

// Output is what is kept of a command's output, from From on, without a gap. It ends at Total, or before if something
// in between is not kept: to continue from where it ended reads what comes after the gap.
type Output struct {
	// From is the offset that was asked for, or the next one that is kept.
	From int64
	// Total is how much the command had written when this was opened.
	Total int64

	output *output
	at     int64
	// file is a segment that begins and ends at these offsets.
	file       *os.File
	begin, end int64
}

// read opens what is kept from an offset on.
func (o *output) read(from int64) *Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &Output{From: max(from, o.written), Total: o.written, output: o}
	for _, s := range o.segments {
		if from < s.end() {
			r.From = max(from, s.from)
			break
		}
	}
	r.at = r.From
	return r
}

// segmentAt is the segment that keeps the byte at an offset.
func (o *output) segmentAt(at int64) (segment, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.segments {
		if s.from <= at && at < s.end() {
			return s, true
		}
	}
	return segment{}, false
}

// Read implements io.Reader.
func (r *Output) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if r.file == nil || r.at >= r.end {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n, err := r.file.ReadAt(p[:min(int64(len(p)), r.end-r.at)], r.at-r.begin)
	r.at += int64(n)
	if n > 0 {
		return n, nil
	}
	return 0, err // io.EOF: A command has cut the file. What is missing is a gap.
}

// next opens the next segment. The error is io.EOF at a gap and at the end.
func (r *Output) next() error {
	if err := r.Close(); err != nil {
		return fmt.Errorf("reading output: %w", err)
	}
	s, ok := r.output.segmentAt(r.at)
	if !ok || r.at >= r.Total {
		return io.EOF
	}
	f, err := durable.OpenRegular(r.output.name(s))
	if errors.Is(err, os.ErrNotExist) {
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("reading output: %w", err)
	}
	r.file, r.begin, r.end = f, s.from, min(s.end(), r.Total)
	return nil
}

// Close implements io.Closer.
func (r *Output) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}
