// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"parley.dev/parley/internal/workspace/protocol"
)

// Write replaces the content of a file, and creates the file and its directories if they are missing. The key may be
// empty; see protocol.HeaderCall.
func (f *Files) Write(ctx context.Context, key, asked, content string) (*protocol.FileInfo, error) {
	return f.write(ctx, key, asked, content, false)
}

// WriteProgram is Write, but that a new file is executable.
func (f *Files) WriteProgram(ctx context.Context, key, asked, content string) (*protocol.FileInfo, error) {
	return f.write(ctx, key, asked, content, true)
}

func (f *Files) write(ctx context.Context, key, asked, content string, executable bool) (*protocol.FileInfo, error) {
	if len(content) > protocol.MaxFileBytes {
		return nil, refuse(protocol.TooLarge, "The content of %q has %s, more than %s.", asked, size(int64(len(content))),
			size(protocol.MaxFileBytes))
	}
	request := hashOf("write\n", asked, "\n", content)
	return once[protocol.FileInfo](ctx, f.committer, key, request, func() (*change, error) {
		p, err := f.dir.resolve(asked)
		if err == nil {
			err = f.dir.checkWritable(p)
		}
		if err != nil {
			return nil, err
		}
		info := protocol.FileInfo{Path: p.path, Size: int64(len(content)), Created: p.info == nil}
		return &change{files: []newContent{{p, content, executable}}, answer: info}, nil
	})
}

// checkWritable refuses to replace a read-only file, which a rename could replace.
func (d *directory) checkWritable(p place) error {
	switch {
	case p.info != nil && !p.info.Mode().IsRegular():
		return notRegular(p.asked, p.info.Mode())
	case strings.HasSuffix(p.asked, "/"):
		return refuse(protocol.NotRegular, "%q names a directory, because it ends in a slash.", p.asked)
	case p.info == nil:
		return nil
	}
	file, err := d.root.OpenFile(p.path, os.O_WRONLY|openQuietly, 0)
	switch {
	case errors.Is(err, syscall.ETXTBSY): // A running program keeps its old content.
		return nil
	case err != nil:
		return explain(p.asked, err)
	}
	closeRead(file)
	return nil
}

// attempts is how often a change is tried while other processes change the same files.
const attempts = 3

// errChanged means that a file has changed between its reading and its replacement.
var errChanged = errors.New("the file has changed meanwhile")

// change gives new content to all its files or none.
type change struct {
	files  []newContent
	answer any
}

// newContent of a file.
type newContent struct {
	place   place
	content string
	// executable is for a new file.
	executable bool
}

// committer makes changes, one after the other.
type committer struct {
	dir     *directory
	journal journal
	log     *slog.Logger
	before  func(step string) error
	// changing holds a value during a change.
	changing chan struct{}
}

// once makes a change, and returns its answer. A change with a key that was made before is not made again. One that
// was refused has changed nothing, and may be repeated. The request is a hash of the request.
func once[T any](ctx context.Context, m *committer, key, request string, prepare func() (*change, error)) (*T, error) {
	raw, err := m.once(ctx, key, request, prepare)
	if err != nil {
		return nil, err
	}
	var answer T
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("decoding the answer of a change: %w", err)
	}
	return &answer, nil
}

func (m *committer) once(ctx context.Context, key, request string, prepare func() (*change, error)) (json.RawMessage,
	error) {
	if key != "" && !protocol.ValidKey(key) {
		return nil, refuse(protocol.BadRequest, "%q cannot be the key of a call.", key)
	}
	select {
	case m.changing <- struct{}{}:
		defer func() { <-m.changing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if state, before := m.journal.find(key); state != unseen {
		return repeated(state, before, request)
	}
	var failure error
	for range attempts {
		c, err := prepare()
		if err != nil {
			return nil, err
		}
		answer, err := m.commit(key, request, c)
		if !errors.Is(err, errChanged) {
			return answer, err
		}
		failure = err
	}
	return nil, refuse(protocol.Internal, "%v, %d times. Nothing was changed.", failure, attempts)
}

// repeated answers a request for a change that began before.
func repeated(s state, r *record, request string) (json.RawMessage, error) {
	switch {
	case r == nil:
		return nil, refuse(protocol.OutcomeUnknown,
			"This change began before, and its record is lost. Read the files before you make it again.")
	case r.Request != request:
		return nil, refuse(protocol.BadRequest, "The key of this call was used before, for another change.")
	case s == made:
		return r.Answer, nil
	}
	var names []string
	for _, t := range r.Files {
		names = append(names, t.Path)
	}
	return nil, refuse(protocol.OutcomeUnknown,
		"This change began before and was interrupted, and its files have changed since. Read %q before you make it again.",
		names)
}

// commit stores the record of a change, writes all new content next to the files, and then renames it.
func (m *committer) commit(key, request string, c *change) (json.RawMessage, error) {
	answer, err := json.Marshal(c.answer)
	if err != nil {
		return nil, refuse(protocol.Internal, "Encoding the answer failed: %v.", err)
	}
	id := rand.Text()[:12]
	r, err := m.plan(id, c)
	if err != nil {
		return nil, err
	}
	r.Request, r.Answer = request, answer
	name := key
	if name == "" {
		name = "_" + id
	}
	if err := m.do("store the record", func() error { return m.journal.begin(name, r) }); err != nil {
		return nil, errors.Join(explain("the journal of changes", err), m.journal.end(name, unseen))
	}
	outcome, err := m.apply(r, c)
	m.end(name, outcome)
	switch {
	case outcome == unknown:
		return repeated(unknown, r, request)
	case outcome == made && err != nil:
		m.log.Warn("A change was made, but may not be on the disk", "error", err)
	case err != nil:
		return nil, err
	}
	return answer, nil
}

func (m *committer) end(name string, s state) {
	if err := m.do("end the record", func() error { return m.journal.end(name, s) }); err != nil {
		m.log.Warn("The record of a change could not be ended", "error", err)
	}
}

// do performs one step of a change on the disk.
func (m *committer) do(what string, action func() error) error {
	if err := m.before(what); err != nil {
		return err
	}
	return action()
}

// plan is the record of a change, with unused names for temporary files.
func (m *committer) plan(id string, c *change) (*record, error) {
	r := &record{}
	for i, n := range c.files {
		t := target{Path: n.place.path, Before: identityOf(n.place.info), Size: int64(len(n.content)),
			Hash: hashOf(n.content)}
		temporary := path.Join(path.Dir(t.Path), fmt.Sprintf(".parley-%s-%d", id, i))
		t.Next = temporary + ".new"
		if t.Before != nil && len(c.files) > 1 {
			t.Backup = temporary + ".old"
		}
		r.Files = append(r.Files, t)
		missing, err := m.dir.missing(path.Dir(t.Path))
		if err != nil {
			return nil, explain(n.place.asked, err)
		}
		for _, dir := range missing {
			if !slices.Contains(r.Directories, dir) {
				r.Directories = append(r.Directories, dir)
			}
		}
	}
	return r, nil
}
