// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxEdits bounds the edits of one request, and with them how often a file is searched.
	maxEdits = 500
	// maxEditedBytes bounds the files of one request together, old and new: they are held in memory.
	maxEditedBytes = 64 << 20
)

// Edit replaces texts in files, in all of them or in none. Several edits of one file apply in their order. The key may
// be empty; see protocol.HeaderCall.
func (f *Files) Edit(ctx context.Context, key string, r *protocol.EditRequest) (*protocol.EditResponse, error) {
	if len(r.Edits) == 0 || len(r.Edits) > maxEdits {
		return nil, refuse(protocol.BadRequest, "There must be 1 to %d edits, not %d.", maxEdits, len(r.Edits))
	}
	request, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	raw, err := f.committer.once(ctx, key, hashOf("edit\n", string(request)), func() (*change, error) {
		return f.editing(ctx, r.Edits)
	})
	return answered[protocol.EditResponse](raw, err)
}

// document is a file that is being edited.
type document struct {
	place         place
	before, after string
	replaced      int
}

// editing makes all edits in memory.
func (f *Files) editing(ctx context.Context, edits []protocol.Edit) (*change, error) {
	documents, err := f.documents(ctx, edits)
	if err != nil {
		return nil, err
	}
	c := &change{}
	answer := &protocol.EditResponse{Files: []protocol.EditedFile{}}
	left := maxDiffs
	for _, d := range documents {
		diff := ""
		if created := d.place.info == nil; created || d.before != d.after {
			c.files = append(c.files, newContent{d.place, d.after})
			diff = unified(d.place.path, created, d.before, d.after, min(left, maxDiff))
			left = max(left-len(diff), 0)
		}
		answer.Files = append(answer.Files, protocol.EditedFile{Path: d.place.path, Replaced: d.replaced, Diff: diff})
	}
	c.answer = answer
	return c, nil
}

// documents reads the files and applies the edits, in the order in which the files are named first.
func (f *Files) documents(ctx context.Context, edits []protocol.Edit) (documents []*document, err error) {
	places := map[string]*document{}
	held := 0
	for i, edit := range edits {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := f.dir.resolve(edit.Path)
		if err != nil {
			return nil, ofEdit(i, len(edits), err)
		}
		d := places[p.path]
		if d == nil {
			if d, err = f.document(p); err != nil {
				return nil, ofEdit(i, len(edits), err)
			}
			places[p.path] = d
			documents = append(documents, d)
			held += len(d.before) + len(d.after)
		}
		held -= len(d.after)
		n := 0
		if d.after, n, err = applyEdit(edit, d.after, d.place.info != nil); err != nil {
			return nil, ofEdit(i, len(edits), err)
		}
		d.replaced += n
		if held += len(d.after); held > maxEditedBytes {
			return nil, refuse(protocol.TooLarge, "The files have more than %s together. Edit them one by one.",
				size(maxEditedBytes))
		}
	}
	return documents, nil
}

// ofEdit says which edit was refused, and that none was made.
func ofEdit(i, all int, err error) error {
	refused, ok := errors.AsType[*protocol.Error](err)
	if !ok || all == 1 {
		return err
	}
	return refuse(refused.Code, "Edit %d of %d: %s\nNo file was changed.", i+1, all, refused.Message)
}

// document reads a file that is to be edited, or begins one that is to be made.
func (f *Files) document(p place) (*document, error) {
	if err := f.dir.writable(p); err != nil {
		return nil, err
	}
	if p.info == nil {
		return &document{place: p}, nil
	}
	file, p, err := f.dir.openPlace(p)
	if err != nil {
		return nil, err
	}
	defer closeRead(file)
	content, err := readText(file, p)
	if err != nil {
		return nil, err
	}
	return &document{place: p, before: content, after: content}, nil
}
