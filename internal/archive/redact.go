// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"parley.dev/parley/internal/chat/history/redact"
)

// Redaction describes what a redaction changes in an archive.
type Redaction struct {
	// Archive is the archive afterwards.
	Archive Entry `json:"archive"`
	// Objects are those that had the text.
	Objects []RedactedObject `json:"objects"`
	// Changed is whether the archive changes. Without Objects, only its entry does: that of an interrupted redaction.
	Changed bool `json:"changed"`
	// Left are the fields that still have the text, because they name something, as RESOURCE/NAME FIELD.
	Left []string `json:"left,omitempty"`
}

// RedactedObject is an object of an archive that had the text.
type RedactedObject struct {
	// Object is RESOURCE/NAME.
	Object string `json:"object"`
	// Fields are the paths of the changed fields; none if the object was removed.
	Fields []string `json:"fields,omitempty"`
}

// Redact removes a text from the archive of a chat, as a redaction of the chat in the cluster does. A dry run changes
// nothing.
//
// The store replaces the object at once, so that a crash leaves the one or the other. It reads the archive twice: the
// new object has its own checksum as metadata, because the entry follows after the object. A crash between both leaves
// an archive that can be read, and a repeated call writes the entry. If another redaction changes the archive, it
// fails with ErrConflict: it would write the text of the other again.
func (s *Store) Redact(ctx context.Context, namespace, chat, uid string, text *redact.Text, dryRun bool) (*Redaction,
	error) {
	at, err := s.versions(ctx, namespace, chat, uid)
	if err != nil {
		return nil, err
	}
	before, err := s.Get(ctx, namespace, chat, uid)
	if err != nil {
		return nil, err
	}
	r := &Redaction{Archive: *before, Objects: []RedactedObject{}}
	r.Archive.Title = text.Replace(before.Title)
	pass := redaction{store: s, before: before, text: text, now: s.now()}
	if err := r.Archive.compress(io.Discard, pass.objects(ctx, r)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", before.object(), err)
	}
	r.Changed = len(r.Objects) > 0 || r.Archive.Title != before.Title || pass.sum != before.SHA256
	if dryRun || !r.Changed {
		return r, nil
	}
	return r, s.put(ctx, &r.Archive, at, pass.objects(ctx, nil))
}

// redaction removes a text from the objects of an archive.
type redaction struct {
	store  *Store
	before *Entry
	text   *redact.Text
	now    time.Time
	// sum is the checksum of the object that was read.
	sum string
}

// objects are those of the archive without the text. They are noted in the report, unless it is nil.
func (r *redaction) objects(ctx context.Context, report *Redaction) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range r.read(ctx) {
			keep := true
			if err == nil {
				keep, err = r.redact(o, report)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if keep && !yield(o, nil) {
				return
			}
		}
	}
}

func (r *redaction) redact(o *unstructured.Unstructured, report *Redaction) (keep bool, err error) {
	changed, keep, err := r.text.Archived(o, r.now)
	if err != nil || report == nil {
		return keep, err
	}
	name := strings.ToLower(o.GetKind()) + "s/" + o.GetName()
	if len(changed) > 0 || !keep {
		report.Objects = append(report.Objects, RedactedObject{name, changed})
	}
	if keep {
		for _, field := range r.text.Find("", o.Object) {
			report.Left = append(report.Left, name+" "+field)
		}
	}
	return keep, nil
}

// read are the objects of the archive. The last error is whether it is as it was written. Errors have no content.
func (r *redaction) read(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		from, to := io.Pipe()
		var reading sync.WaitGroup
		reading.Go(func() {
			var err error
			r.sum, err = r.store.readSum(ctx, r.before, to)
			_ = to.CloseWithError(err) // It never fails.
		})
		defer reading.Wait()
		defer func() { _ = from.Close() }()
		list := json.NewDecoder(from)
		err := skipToItems(list)
		for err == nil && list.More() {
			var raw json.RawMessage
			o := &unstructured.Unstructured{}
			if err = list.Decode(&raw); err == nil {
				err = utiljson.Unmarshal(raw, &o.Object)
			}
			if err == nil && !yield(o, nil) {
				return
			}
		}
		if err == nil {
			_, err = io.Copy(io.Discard, from)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// skipToItems reads a list up to its first item.
func skipToItems(list *json.Decoder) error {
	for {
		token, err := list.Token()
		if err != nil || token == json.Delim('[') {
			return err
		}
	}
}
