// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package storedfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

var now = chattest.Now

func TestFilesAreUnneededAfterTheirTime(t *testing.T) {
	living := map[string][]string{"u1": {"named"}}
	for name, c := range map[string]struct {
		uid, digest string
		age         time.Duration
		unneeded    bool
	}{
		"named":                 {"u1", "named", 1000 * time.Hour, false},
		"not named for a day":   {"u1", "other", 25 * time.Hour, true},
		"not named yet":         {"u1", "other", 23 * time.Hour, false},
		"of a chat that's gone": {"u2", "named", 31 * 24 * time.Hour, true},
		"of a new chat":         {"u2", "named", time.Minute, false},
		"of a fast clock":       {"u2", "named", -time.Hour, false},
	} {
		file := archive.File{UID: c.uid, SHA256: c.digest, Modified: now.Add(-c.age)}
		if got := unneeded([]archive.File{file}, living, now); (len(got) == 1) != c.unneeded {
			t.Errorf("%s: unneeded are %v", name, got)
		}
	}
}

// fixture is a chat with a message that names a file.
type fixture struct {
	*Reconciler

	t   *testing.T
	api *fakeapi.Server
}

// sha is a digest that begins with a letter.
func sha(letter string) string { return strings.Repeat(letter, 64) }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { check.OK(t, bucket.Close()) })
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.UID = "u1"
	message := chattest.In("ns", chattest.User("c", "m"))
	message.Spec.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "f",
		MediaType: "image/png", Stored: &v1beta1.StoredFile{SHA256: sha("a"), Size: 1}}}}
	api := fakeapi.New(t, chat, message)
	for _, key := range []string{"u1/" + sha("a"), "u1/" + sha("b"), "gone/" + sha("a")} {
		check.OK(t, bucket.WriteAll(t.Context(), "files/ns/"+key, []byte("x"), nil))
	}
	check.OK(t, bucket.WriteAll(t.Context(), "files/other/gone/"+sha("a"), []byte("x"), nil))
	f := &fixture{t: t, api: api}
	f.Reconciler = &Reconciler{Client: api.Client, Live: api.Live, Store: archive.New(bucket, time.Now),
		Owns: func(ns string) bool { return ns == "ns" },
		Now:  func() time.Time { return time.Now().Add(31 * 24 * time.Hour) }}
	return f
}

// left are the files in the store.
func (f *fixture) left() (keys []string) {
	f.t.Helper()
	for _, ns := range []string{"ns", "other"} {
		for file, err := range f.Store.Files().List(f.t.Context(), ns, "") {
			check.OK(f.t, err)
			keys = append(keys, fmt.Sprintf("%s/%s/%c", ns, file.UID, file.SHA256[0]))
		}
	}
	slices.Sort(keys)
	return keys
}

func TestSweepKeepsNamedFilesAndOtherNamespaces(t *testing.T) {
	f := newFixture(t)
	check.OK(t, f.Sweep(t.Context()))
	check.Equal(t, "files", []string{"ns/u1/a", "other/gone/a"}, f.left())
}

func TestSweepDeletesNothingNew(t *testing.T) {
	f := newFixture(t)
	f.Now = time.Now
	all := f.left()
	check.OK(t, f.Sweep(t.Context()))
	check.Equal(t, "files", all, f.left())
}

func TestSweepDeletesNothingItCannotVerify(t *testing.T) {
	for _, kind := range []string{"chats", "messages"} {
		f := newFixture(t)
		f.Live = failing{f.api.Live, kind}
		all := f.left()
		if err := f.Sweep(t.Context()); !errors.Is(err, errFailed) {
			t.Errorf("it fails with %v", err)
		}
		check.Equal(t, "files", all, f.left())
	}
}

func TestOutdatedCacheCostsNoFile(t *testing.T) {
	f := newFixture(t)
	f.Client = fakeapi.New(t).Client
	check.OK(t, f.Sweep(t.Context()))
	check.Equal(t, "files", []string{"ns/u1/a", "other/gone/a"}, f.left())
}

func TestFilesOfDeletedChatAreDeleted(t *testing.T) {
	f := newFixture(t)
	for _, uid := range []string{"u1", ""} {
		_, err := f.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: uid}})
		check.OK(t, err)
		check.Equal(t, "files", []string{"ns/gone/a", "other/gone/a"}, f.left())
	}
}

var errFailed = errors.New("failed")

// failing is an API server that does not list a kind.
type failing struct {
	client.Reader
	kind string
}

// List implements client.Reader.
func (f failing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	_, messages := list.(*v1beta1.ChatMessageList)
	if messages == (f.kind == "messages") {
		return errFailed
	}
	return f.Reader.List(ctx, list, options...)
}
