// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// bucket is a store in memory.
type bucket struct {
	*archive.Store

	t    *testing.T
	blob *blob.Bucket
}

func newBucket(t *testing.T) bucket {
	t.Helper()
	b := memblob.OpenBucket(nil)
	t.Cleanup(func() { check.OK(t, b.Close()) })
	return bucket{archive.New(b, func() time.Time { return chattest.Now }), t, b}
}

// keys of all objects.
func (b bucket) keys() (keys []string) {
	b.t.Helper()
	page, _, err := b.blob.ListPage(b.t.Context(), blob.FirstPageToken, 1000, nil)
	check.OK(b.t, err)
	for _, o := range page {
		keys = append(keys, o.Key)
	}
	return keys
}

func (b bucket) write(chat *v1beta1.Chat) *archive.Entry {
	b.t.Helper()
	e, err := b.Write(b.t.Context(), chat, objects(chat))
	check.OK(b.t, err)
	return e
}

// read decodes the list of an archive.
func (b bucket) read(e *archive.Entry) (names []string) {
	b.t.Helper()
	var text bytes.Buffer
	check.OK(b.t, b.Read(b.t.Context(), e, &text))
	var list struct {
		Kind  string
		Items []struct {
			Kind     string
			Metadata struct {
				Name          string
				ManagedFields []any
			}
		}
	}
	check.OK(b.t, json.Unmarshal(text.Bytes(), &list))
	for _, o := range list.Items {
		if list.Kind != "List" || o.Metadata.ManagedFields != nil {
			b.t.Errorf("got %s", text.String())
		}
		names = append(names, o.Kind+"/"+o.Metadata.Name)
	}
	return names
}

func chat(name, uid string, created time.Time) *v1beta1.Chat {
	c := chattest.In("ns", chattest.Chat(name))
	c.UID, c.CreationTimestamp = types.UID(uid), metav1.NewTime(created)
	c.Status.Title, c.Status.History.Head = "A <title>", "m-2"
	c.Status.ChatClass = &v1beta1.AppliedChatClass{Name: "coder"}
	return c
}

// objects are a chat and two messages of it.
func objects(c *v1beta1.Chat) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		top := c.DeepCopy()
		top.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Chat"))
		top.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		for i, o := range []archive.Object{top, chattest.User(c.Name, "m-1"), chattest.User(c.Name, "m-2")} {
			if i > 0 {
				o.GetObjectKind().SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatMessage"))
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

var day = time.Date(2026, 11, 19, 23, 59, 59, 0, time.UTC)

func TestArchivedChatIsListedReadAndDeleted(t *testing.T) {
	b := newBucket(t)
	e := b.write(chat("c", "u1", day))
	if e.Title != "A <title>" || e.ChatClass != "coder" || e.Head != "m-2" || e.Objects["ChatMessage"] != 2 ||
		!e.ArchivedAt.Equal(chattest.Now.Truncate(time.Second)) {
		t.Errorf("the entry is %+v", e)
	}
	want := []string{"chats/ns/c/u1.json.gz", "index/ns/2026-11-19/c/u1.json"}
	check.Equal(t, "keys", want, b.keys())
	check.Equal(t, "objects", []string{"Chat/c", "ChatMessage/m-1", "ChatMessage/m-2"}, b.read(e))
	found, err := b.Get(t.Context(), "ns", "c", "u1")
	check.OK(t, err)
	check.Equal(t, "entry", e, found)
	check.OK(t, b.Delete(t.Context(), "ns", "c", "u1"))
	check.Equal(t, "keys", nil, b.keys())
	for name, err := range map[string]error{
		"get":  func() error { _, err := b.Get(t.Context(), "ns", "c", "u1"); return err }(),
		"read": b.Read(t.Context(), e, &bytes.Buffer{}), "delete": b.Delete(t.Context(), "ns", "c", "u1"),
	} {
		if !errors.Is(err, archive.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRepeatedWriteReplacesTheArchive(t *testing.T) {
	b := newBucket(t)
	c := chat("c", "u1", day)
	first := b.write(c)
	c.Status.Title = "Another title"
	second := b.write(c)
	if first.SHA256 == second.SHA256 || len(b.keys()) != 2 {
		t.Errorf("there are %v", b.keys())
	}
	check.Equal(t, "objects", 3, len(b.read(second)))
}

func TestListsHavePagesAndDays(t *testing.T) {
	b := newBucket(t)
	for i, at := range []time.Time{day, day.AddDate(0, 0, 1), day.AddDate(0, 1, 0)} {
		b.write(chat("c", fmt.Sprint("u", i), at))
	}
	other := chat("c", "u9", day)
	other.Namespace = "ns2"
	b.write(other)
	names := func(created string, limit int, next string) ([]string, string) {
		t.Helper()
		entries, next, err := b.List(t.Context(), "ns", created, limit, next)
		check.OK(t, err)
		var uids []string
		for i := range entries {
			uids = append(uids, entries[i].UID)
		}
		return uids, next
	}
	page, next := names("", 2, "")
	check.Equal(t, "first page", []string{"u0", "u1"}, page)
	page, next = names("", 2, next)
	check.Equal(t, "second page", []string{"u2"}, page)
	check.Equal(t, "what follows", "", next)
	page, _ = names("2026-11", 9, "")
	check.Equal(t, "of a month", []string{"u0", "u1"}, page)
	page, _ = names("2026-11-20", 9, "")
	check.Equal(t, "of a day", []string{"u1"}, page)
	all, err := b.Of(t.Context(), "ns", "c")
	check.OK(t, err)
	check.Equal(t, "of a name", 3, len(all))
	if none, err := b.Of(t.Context(), "ns", "other"); err != nil || len(none) > 0 {
		t.Errorf("got %v, %v", none, err)
	}
}

func TestFailedReadLeavesNoArchive(t *testing.T) {
	b := newBucket(t)
	lost := errors.New("the API server is gone")
	_, err := b.Write(t.Context(), chat("c", "u1", day), func(yield func(archive.Object, error) bool) {
		for o := range objects(chat("c", "u1", day)) {
			yield(o, nil)
			break
		}
		yield(nil, lost)
	})
	if !errors.Is(err, lost) || len(b.keys()) > 0 {
		t.Errorf("there are %v: %v", b.keys(), err)
	}
}

func TestObjectWithoutEntryIsNotListed(t *testing.T) {
	b := newBucket(t)
	b.write(chat("c", "u1", day))
	check.OK(t, b.blob.Delete(t.Context(), "index/ns/2026-11-19/c/u1.json"))
	listed, _, err := b.List(t.Context(), "ns", "", 9, "")
	check.OK(t, err)
	named, err := b.Of(t.Context(), "ns", "c")
	check.OK(t, err)
	if len(listed)+len(named) > 0 {
		t.Errorf("listed are %v, and %v", listed, named)
	}
	check.OK(t, b.Delete(t.Context(), "ns", "c", "u1")) // A deletion that did not finish can be repeated.
	check.Equal(t, "keys", nil, b.keys())
}

func TestDamagedEntryIsListedBesideOthers(t *testing.T) {
	for _, damaged := range []string{"{}", "not JSON", `{"uid": 1}`} {
		b := newBucket(t)
		b.write(chat("good", "u1", day))
		b.write(chat("bad", "u2", day))
		check.OK(t, b.blob.WriteAll(t.Context(), "index/ns/2026-11-19/bad/u2.json", []byte(damaged), nil))
		all, _, err := b.List(t.Context(), "ns", "", 9, "")
		check.OK(t, err)
		if len(all) != 2 || all[0].Chat != "bad" || all[0].UID != "u2" || all[0].Problem == "" || all[1].Problem != "" {
			t.Errorf("%s: listed are %+v", damaged, all)
		}
		if _, err := b.Get(t.Context(), "ns", "bad", "u2"); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: reading it: %v", damaged, err)
		}
	}
}

func TestUnknownPageIsAnErrorOfItsOwn(t *testing.T) {
	if _, _, err := newBucket(t).List(t.Context(), "ns", "", 9, "%"); !errors.Is(err, archive.ErrPage) {
		t.Errorf("got %v", err)
	}
}

func TestDamagedArchiveIsNoticed(t *testing.T) {
	var other bytes.Buffer
	compressed := gzip.NewWriter(&other)
	_, _ = compressed.Write([]byte("{}"))
	check.OK(t, compressed.Close())
	for name, damage := range map[string]func([]byte) []byte{
		"truncated":      func(b []byte) []byte { return b[:len(b)-9] },
		"another one":    func([]byte) []byte { return other.Bytes() },
		"not compressed": func([]byte) []byte { return []byte("{}") },
		"longer":         func(b []byte) []byte { return append(slices.Clone(b), b...) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(t)
			e := b.write(chat("c", "u1", day))
			key := b.keys()[0]
			raw, err := b.blob.ReadAll(t.Context(), key)
			check.OK(t, err)
			check.OK(t, b.blob.WriteAll(t.Context(), key, damage(raw), nil))
			if err := b.Read(t.Context(), e, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "differs") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestURLsOfBuckets(t *testing.T) {
	if store, err := archive.Open(t.Context(), "", time.Now); store != nil || err != nil {
		t.Errorf("without a URL: %v, %v", store, err)
	}
	for address, want := range map[string]string{
		"ftp://user:secret@host": "must begin with s3:// or azblob:// or file://",
		"bucket":                 "must begin with",
		"s3://b?nonsense=1":      "opening the archive",
	} {
		if _, err := archive.Open(t.Context(), address, time.Now); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	store, err := archive.Open(t.Context(), "file://"+t.TempDir()+"?no_tmp_dir=true", time.Now)
	check.OK(t, err)
	e, err := store.Write(t.Context(), chat("c", "u1", day), objects(chat("c", "u1", day)))
	check.OK(t, err)
	check.OK(t, store.Read(t.Context(), e, &bytes.Buffer{}))
}
