// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/chat/history/redact"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

const pasted = "hunter2-2026"

func textOf(t *testing.T, value string) *redact.Text {
	t.Helper()
	text, err := redact.New(value)
	check.OK(t, err)
	return text
}

// withText are a chat, three messages and an approval. One message does not have the text, and one is superseded.
func withText(c *v1beta1.Chat) iter.Seq2[archive.Object, error] {
	c.Status.Title, c.Status.LastReply = "What is "+pasted+"?", pasted
	top := c.DeepCopy()
	asked := chattest.User(c.Name, "m-1", chattest.Content("It is "+pasted))
	other := chattest.User(c.Name, "m-2", chattest.Content("<Other words> & more"))
	superseded := chattest.User(c.Name, "m-3", chattest.Content(pasted))
	superseded.Status.State = v1beta1.MessageSuperseded
	approval := &v1beta1.ToolApproval{Spec: v1beta1.ToolApprovalSpec{Comment: pasted}}
	approval.Name = "a"
	return func(yield func(archive.Object, error) bool) {
		for kind, objects := range map[string][]archive.Object{"Chat": {top}, "ChatMessage": {asked, other, superseded},
			"ToolApproval": {approval}} {
			for _, o := range objects {
				o.GetObjectKind().SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}

// archivedText is a store with the archive of such a chat, in memory and in a folder.
func archivedText(t *testing.T, run func(*testing.T, bucket)) {
	t.Helper()
	folder, err := fileblob.OpenBucket(t.TempDir(), &fileblob.Options{NoTempDir: true})
	check.OK(t, err)
	for name, b := range map[string]*blob.Bucket{"memory": memblob.OpenBucket(nil), "folder": folder} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { check.OK(t, b.Close()) })
			store := bucket{archive.New(b, func() time.Time { return chattest.Now }), t, b}
			c := chat("c", "u1", day)
			_, err := store.Write(t.Context(), c, withText(c))
			check.OK(t, err)
			run(t, store)
		})
	}
}

// text is the archive as it is read, and its entry.
func (b bucket) text() string {
	b.t.Helper()
	e, err := b.Get(b.t.Context(), "ns", "c", "u1")
	check.OK(b.t, err)
	var text bytes.Buffer
	check.OK(b.t, b.Read(b.t.Context(), e, &text))
	return text.String() + e.Title
}

func (b bucket) redact(value string, dryRun bool) *archive.Redaction {
	b.t.Helper()
	r, err := b.Redact(b.t.Context(), "ns", "c", "u1", textOf(b.t, value), dryRun)
	check.OK(b.t, err)
	return r
}

func TestRedactedTextIsGoneFromArchive(t *testing.T) {
	archivedText(t, func(t *testing.T, b bucket) {
		before := b.text()
		dry := b.redact(pasted, true)
		check.Equal(t, "the archive after a dry run", before, b.text())
		r := b.redact(pasted, false)
		check.Equal(t, "what is reported", dry.Objects, r.Objects)
		fields := map[string][]string{}
		for _, o := range r.Objects {
			fields[o.Object] = o.Fields
		}
		check.Equal(t, "the objects", map[string][]string{"chats/c": {"status.lastReply", "status.title"},
			"chatmessages/m-1": {"spec.content"}, "chatmessages/m-3": nil, "toolapprovals/a": nil}, fields)
		if left := b.text(); strings.Contains(left, pasted) || !strings.Contains(left, "It is [redacted]") ||
			!strings.HasSuffix(left, "What is [redacted]?") {
			t.Errorf("the archive is %s", left)
		}
		e, err := b.Get(t.Context(), "ns", "c", "u1")
		check.OK(t, err)
		check.Equal(t, "entry", &r.Archive, e)
		check.Equal(t, "objects", map[string]int{"Chat": 1, "ChatMessage": 2}, e.Objects)
		check.Equal(t, "keys", 2, len(b.keys()))
		again := b.redact(pasted, false)
		check.Equal(t, "what is found afterwards", 0, len(again.Objects))
	})
}

func TestRedactionOfArchiveIsNoEdit(t *testing.T) {
	archivedText(t, func(t *testing.T, b bucket) {
		hashes := func() map[string]string {
			var list struct{ Items []v1beta1.ChatMessage }
			text := b.text()
			check.OK(t, json.NewDecoder(strings.NewReader(text)).Decode(&list))
			found := map[string]string{}
			for i := range list.Items {
				if m := &list.Items[i]; m.Kind == "ChatMessage" && m.Name != "m-3" {
					found[m.Name] = content.Of(m)
				}
			}
			return found
		}
		before := hashes()
		b.redact(pasted, false)
		b.redact("[redacted]", false) // A second redaction refers to the first content, too.
		check.Equal(t, "the hashes", before, hashes())
	})
}

// TestCrashBetweenWritesKeepsArchive makes the state in which the object was written, and its entry was not.
func TestCrashBetweenWritesKeepsArchive(t *testing.T) {
	archivedText(t, func(t *testing.T, b bucket) {
		const index = "index/ns/2026-11-19/c/u1.json"
		entry, err := b.blob.ReadAll(t.Context(), index)
		check.OK(t, err)
		b.redact(pasted, false)
		check.OK(t, b.blob.WriteAll(t.Context(), index, entry, nil))
		if text := b.text(); !strings.Contains(text, "It is [redacted]") || !strings.HasSuffix(text, pasted+"?") {
			t.Errorf("after the crash, the archive is %s", text)
		}
		b.redact(pasted, false)
		if text := b.text(); strings.Contains(text, pasted) {
			t.Errorf("after the repetition, the archive is %s", text)
		}
		e, err := b.Get(t.Context(), "ns", "c", "u1")
		check.OK(t, err)
		raw, err := b.blob.ReadAll(t.Context(), b.keys()[0])
		check.OK(t, err)
		check.Equal(t, "the size in the entry", int64(len(raw)), e.Size)
	})
}

func TestNamesWithTheTextAreReported(t *testing.T) {
	b := newBucket(t)
	c := chat("hunter2", "u1", day)
	b.write(c)
	r, err := b.Redact(t.Context(), "ns", "hunter2", "u1", textOf(t, "hunter2"), false)
	check.OK(t, err)
	check.Equal(t, "changed", 0, len(r.Objects))
	if len(r.Left) == 0 || r.Left[0] != "chats/hunter2 metadata.name" {
		t.Errorf("left are %v", r.Left)
	}
}

func TestDamagedArchiveIsNotRewritten(t *testing.T) {
	archivedText(t, func(t *testing.T, b bucket) {
		key := b.keys()[0]
		raw, err := b.blob.ReadAll(t.Context(), key)
		check.OK(t, err)
		attributes, err := b.blob.Attributes(t.Context(), key)
		check.OK(t, err)
		damaged := raw[:len(raw)-9]
		check.OK(t, b.blob.WriteAll(t.Context(), key, damaged, &blob.WriterOptions{Metadata: attributes.Metadata}))
		if _, err := b.Redact(t.Context(), "ns", "c", "u1", textOf(t, pasted), false); err == nil ||
			!strings.Contains(err.Error(), "differs") {
			t.Errorf("got %v", err)
		}
		after, err := b.blob.ReadAll(t.Context(), key)
		check.OK(t, err)
		check.Equal(t, "the object", string(damaged), string(after))
		_, err = b.Redact(t.Context(), "ns", "c", "other", textOf(t, pasted), false)
		check.Equal(t, "another archive is not found", true, errors.Is(err, archive.ErrNotFound))
	})
}

// duringRedaction redacts the archive in a second gateway, which does something after it has read the versions.
func (b bucket) duringRedaction(text string, do func()) error {
	other := archive.New(b.blob, func() time.Time {
		do()
		return chattest.Now
	})
	_, err := other.Redact(b.t.Context(), "ns", "c", "u1", textOf(b.t, text), false)
	return err
}

func TestConcurrentRedactionOfArchiveIsConflict(t *testing.T) {
	archivedText(t, func(t *testing.T, b bucket) {
		b.write(chat("other", "u2", day))
		err := b.duringRedaction("Other words", func() {
			b.redact(pasted, false)
			_, err := b.Redact(t.Context(), "ns", "other", "u2", textOf(t, pasted), false)
			check.OK(t, err)
		})
		check.Equal(t, "it is a conflict", true, errors.Is(err, archive.ErrConflict))
		if text := b.text(); strings.Contains(text, pasted) {
			t.Errorf("the text is back: %s", text)
		}
		b.redact("Other words", false)
		if text := b.text(); strings.Contains(text, pasted) || strings.Contains(text, "Other words") {
			t.Errorf("after the repetition, the archive is %s", text)
		}
	})
}

func TestArchiveDeletedDuringRedactionStaysDeleted(t *testing.T) {
	archivedText(t, func(t *testing.T, b bucket) {
		err := b.duringRedaction(pasted, func() { check.OK(t, b.Delete(t.Context(), "ns", "c", "u1")) })
		check.Equal(t, "it is not found", true, errors.Is(err, archive.ErrNotFound))
		check.Equal(t, "keys", 0, len(b.keys()))
	})
}
