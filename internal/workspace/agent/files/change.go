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
	"path"
	"slices"

	"parley.dev/parley/internal/workspace/protocol"
)

// attempts is how often a change is tried of files that somebody else changes at the same moment.
const attempts = 3

// errChanged means that somebody else has changed a file between its reading and its replacement.
var errChanged = errors.New("the file has changed meanwhile")

// change is what a request does: files get new content, all of them or none.
type change struct {
	files []newContent
	// answer is what is said when it is done.
	answer any
}

// newContent is what one file becomes.
type newContent struct {
	place   place
	content string
}

// committer makes changes, one after the other.
type committer struct {
	dir     *directory
	journal *journal
	log     *slog.Logger
	before  func(step string) error
	// changing holds a value while a change is being made.
	changing chan struct{}
}

// once makes a change, unless one with the same key was made before: then its answer is returned again. A change that
// is refused has changed nothing, and may be asked for again. The request is a hash of what is asked for.
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
		return again(state, before, request)
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

// again answers a request for a change that was seen before.
func again(s state, r *record, request string) (json.RawMessage, error) {
	switch {
	case r == nil:
		return nil, refuse(protocol.OutcomeUnknown,
			"This change was begun before, and its record is lost. Read the files before you make it another time.")
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
		"This change was begun before and interrupted, and what it was to change "+
			"has changed since. Read %q before you make it another time.", names)
}

// commit makes a change: what will be done is written down; all new contents are brought to the disk beside the files;
// then they take the files' names.
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
	if err := m.do("write the record down", func() error { return m.journal.begin(name, r) }); err != nil {
		return nil, errors.Join(explain("the journal of changes", err), m.journal.end(name, unseen))
	}
	outcome, err := m.apply(r, c)
	m.end(name, outcome)
	switch {
	case outcome == unknown:
		return again(unknown, r, request)
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

// do does one thing to the disk.
func (m *committer) do(what string, action func() error) error {
	if err := m.before(what); err != nil {
		return err
	}
	return action()
}

// plan says what will be done, under names that nothing has.
func (m *committer) plan(id string, c *change) (*record, error) {
	r := &record{}
	for i, n := range c.files {
		t := target{Path: n.place.path, Before: identityOf(n.place.info), Size: int64(len(n.content)),
			Hash: hashOf(n.content)}
		beside := path.Join(path.Dir(t.Path), fmt.Sprintf(".parley-%s-%d", id, i))
		t.Next = beside + ".new"
		if t.Before != nil && len(c.files) > 1 {
			t.Backup = beside + ".old"
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
