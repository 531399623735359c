// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxEdits bounds the edits of one request, and thus how often a file is searched.
	maxEdits = 500
	// maxEditedBytes bounds the old and new content of one request, which is in memory.
	maxEditedBytes = 64 << 20
	// maxDiff bounds the diff of one file, maxDiffs those of one answer.
	maxDiff, maxDiffs = 16 << 10, 256 << 10
	// diffedBytes bounds the cost of a diff: how many bytes are read to number the lines of all hunks.
	diffedBytes = 512 << 20
	// cutDiff ends a diff that is cut.
	cutDiff = "[the diff is cut here]\n"
)

// Edit makes all edits or none. Edits of one file apply in their order. The key may be empty; see protocol.HeaderCall.
func (f *Files) Edit(ctx context.Context, key string, r *protocol.EditRequest) (*protocol.EditResponse, error) {
	if len(r.Edits) == 0 || len(r.Edits) > maxEdits {
		return nil, refuse(protocol.BadRequest, "There must be 1 to %d edits, not %d.", maxEdits, len(r.Edits))
	}
	request, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return once[protocol.EditResponse](ctx, f.committer, key, hashOf("edit\n", string(request)), func() (*change, error) {
		return f.editAll(ctx, r.Edits)
	})
}

// document is a file during an edit.
type document struct {
	place         place
	before, after string
	replaced      int
}

// editAll makes all edits in memory.
func (f *Files) editAll(ctx context.Context, edits []protocol.Edit) (*change, error) {
	documents, err := f.documents(ctx, edits)
	if err != nil {
		return nil, err
	}
	c, answer := &change{}, &protocol.EditResponse{Files: []protocol.EditedFile{}}
	left := maxDiffs
	for _, d := range documents {
		diff := ""
		if created := d.place.info == nil; created || d.before != d.after {
			c.files = append(c.files, newContent{place: d.place, content: d.after})
			diff = unified(d.place.path, created, d.before, d.after, min(left, maxDiff))
			left = max(left-len(diff), 0)
		}
		answer.Files = append(answer.Files, protocol.EditedFile{Path: d.place.path, Replaced: d.replaced, Diff: diff})
	}
	c.answer = answer
	return c, nil
}

// documents reads the files and applies the edits, in the order in which the files are first named.
func (f *Files) documents(ctx context.Context, edits []protocol.Edit) (documents []*document, err error) {
	for i, edit := range edits {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		documents, err = f.edit(documents, edit)
		if refused, ok := errors.AsType[*protocol.Error](err); ok && len(edits) > 1 {
			return nil, refuse(refused.Code, "Edit %d of %d: %s\nNo file was changed.", i+1, len(edits), refused.Message)
		}
		if err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// edit applies an edit, and adds its file to the documents if it is not among them.
func (f *Files) edit(documents []*document, edit protocol.Edit) ([]*document, error) {
	p, err := f.dir.resolve(edit.Path)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(documents, func(d *document) bool { return d.place.path == p.path })
	if at < 0 {
		d, err := f.document(p)
		if err != nil {
			return nil, err
		}
		at, documents = len(documents), append(documents, d)
	}
	d, n := documents[at], 0
	if d.after, n, err = applyEdit(edit, d.after, d.place.info != nil); err != nil {
		return nil, err
	}
	d.replaced += n
	held := 0
	for _, d := range documents {
		held += len(d.before) + len(d.after)
	}
	if held > maxEditedBytes {
		return nil, refuse(protocol.TooLarge, "The files have more than %s together. Edit them one by one.",
			size(maxEditedBytes))
	}
	return documents, nil
}

// document reads a file, or begins a new one.
func (f *Files) document(p place) (*document, error) {
	if err := f.dir.checkWritable(p); err != nil {
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

// unified is the diff of a file with three lines of context, cut to a length.
func unified(path string, created bool, before, after string, most int) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '"' }) {
		path = strconv.Quote(path)
	}
	old := path
	if created {
		old = "/dev/null"
	}
	edits := udiff.Lines(before, after)
	cut := false
	if cheap := diffedBytes / max(len(before), 1); len(edits) > cheap {
		edits, cut = edits[:max(cheap, 1)], true
	}
	diff, err := udiff.ToUnified(old, path, before, edits, udiff.DefaultContextLines)
	if err != nil {
		return ""
	}
	if len(diff) > most {
		diff, cut = clip.Bytes(diff, max(most-len(cutDiff), 0)), true
		diff = diff[:strings.LastIndexByte(diff, '\n')+1]
	}
	if cut {
		diff += cutDiff
	}
	return diff
}

// listed is how many occurrences a refusal names, and counted how many it counts.
const listed, counted = 10, 100

// applyEdit makes one edit in a text, and returns the number of replaced occurrences. exists reports whether there was
// a file with the text.
func applyEdit(e protocol.Edit, content string, exists bool) (string, int, error) {
	if strings.ContainsRune(e.NewText, 0) {
		return "", 0, refuse(protocol.BadRequest, "The new text for %q holds a zero byte, which no text has.", e.Path)
	}
	if e.OldText == "" {
		return fill(e, content)
	}
	if !exists && content == "" {
		return "", 0, refuse(protocol.NotFound, "There is no file %q. To make it, leave the text to replace empty.", e.Path)
	}
	oldText, newText := adapt(e, content)
	if oldText == newText {
		return "", 0, refuse(protocol.BadRequest, "The new text for %q is the same as the one to replace.", e.Path)
	}
	first := strings.Index(content, oldText)
	if first < 0 {
		return "", 0, refuse(protocol.NoMatch, "The text to replace does not occur in %q. %s", e.Path,
			passage(nearest(content, oldText)))
	}
	count := 1
	if e.ReplaceAll {
		count = strings.Count(content, oldText)
	} else if strings.Contains(content[first+1:], oldText) {
		return "", 0, notUnique(e.Path, content, oldText)
	}
	if length := int64(len(content)) + int64(count)*int64(len(newText)-len(oldText)); length > protocol.MaxFileBytes {
		return "", 0, refuse(protocol.TooLarge, "%q would have %s, more than %s.", e.Path, size(length),
			size(protocol.MaxFileBytes))
	}
	return strings.Replace(content, oldText, newText, count), count, nil
}

// fill is the edit of a file that is empty or missing.
func fill(e protocol.Edit, content string) (string, int, error) {
	if content != "" {
		return "", 0, refuse(protocol.BadRequest, "%q is not empty: the text to replace is missing.", e.Path)
	}
	return e.NewText, 0, nil
}

// adapt gives the texts of an edit the line endings of a Windows file: models see no carriage returns. An edit with a
// carriage return is exact.
func adapt(e protocol.Edit, content string) (oldText, newText string) {
	if strings.Contains(e.OldText, "\r") || !endsInCRLF(content) {
		return e.OldText, e.NewText
	}
	return toCRLF(e.OldText), toCRLF(e.NewText)
}

// endsInCRLF reports whether all lines of a text end in CRLF.
func endsInCRLF(text string) bool {
	lines := strings.Count(text, "\n")
	return lines > 0 && lines == strings.Count(text, "\r\n")
}

func toCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// notUnique lists where a text occurs.
func notUnique(path, content, text string) error {
	var lines []string
	number, from, all := 1, 0, 0
	for all <= counted {
		at := strings.Index(content[from:], text)
		if at < 0 {
			break
		}
		if all++; len(lines) < listed {
			number += strings.Count(content[from:from+at], "\n")
			lines = append(lines, strconv.Itoa(number))
			if content[from+at] == '\n' {
				number++
			}
		}
		from += at + 1
	}
	times := strconv.Itoa(all)
	if all > counted {
		times = fmt.Sprintf("more than %d", counted)
	}
	where := strings.Join(slices.Compact(lines), ", ")
	if all > len(lines) {
		where += ", ..."
	}
	return refuse(protocol.NotUnique, "The text to replace occurs %s times in %q, at the lines %s. "+
		"Take more of the text around the one that you mean, or ask for all to be replaced.", times, path, where)
}
