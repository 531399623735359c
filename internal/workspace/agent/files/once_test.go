// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func TestAChangeIsMadeOnceForAKey(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "a-a\n")
	request := edits(protocol.Edit{Path: "file", OldText: "a", NewText: "aa", ReplaceAll: true})
	first, err := w.Edit(t.Context(), "chat-1-call", request)
	check.OK(t, err)
	w.put("file", "somebody else's\n")
	for _, when := range []string{"at once", "after a restart"} {
		again, err := w.Edit(t.Context(), "chat-1-call", request)
		check.OK(t, err)
		check.Equal(t, when, first, again)
		w.open()
	}
	w.expect(map[string]string{"file": "somebody else's\n"})
}

func TestAKeyIsForOneChange(t *testing.T) {
	w := newWorkspace(t)
	_, err := w.Write(t.Context(), "key", "file", "new")
	check.OK(t, err)
	for name, try := range map[string]func() error{
		"another content": func() error { _, err := w.Write(t.Context(), "key", "file", "other"); return err },
		"another file":    func() error { _, err := w.Write(t.Context(), "key", "file2", "new"); return err },
		"an edit": func() error {
			_, err := w.Edit(t.Context(), "key", edits(protocol.Edit{Path: "file", NewText: "new"}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { refused(t, try(), protocol.BadRequest, "used before") })
	}
	w.expect(map[string]string{"file": "new"})
}

func TestRejectedChangeCanBeRetriedWithSameKey(t *testing.T) {
	w := newWorkspace(t)
	request := edits(protocol.Edit{Path: "file", OldText: "a", NewText: "b"})
	_, err := w.Edit(t.Context(), "key", request)
	refused(t, err, protocol.NotFound)
	w.put("file", "a")
	_, err = w.Edit(t.Context(), "key", request)
	check.OK(t, err)
	w.expect(map[string]string{"file": "b"})
}

func TestKeysThatNameNoFileAreRefused(t *testing.T) {
	w := newWorkspace(t)
	for _, key := range []string{"../../canary", "a/b", ".hidden", "_mine", strings.Repeat("k", 201), "a\x00", "ä",
		" "} {
		_, err := w.Write(t.Context(), key, "file", "new")
		refused(t, err, protocol.BadRequest, "key")
	}
	w.expect(map[string]string{})
}

func TestKeysThatLookLikeRecordsAreKeptApart(t *testing.T) {
	w := newWorkspace(t)
	keys := []string{"k", "k.begun", "k.made", "k.unknown", "k.begun.made", "k.unfinished", strings.Repeat("k", 200)}
	for i, key := range keys {
		_, err := w.Write(t.Context(), key, fmt.Sprintf("file%d", i), "new")
		check.OK(t, err)
	}
	w.open()
	for i, key := range keys {
		got, err := w.Write(t.Context(), key, fmt.Sprintf("file%d", i), "new")
		if err != nil || !got.Created {
			t.Errorf("%q was not known after a restart: %+v, %v", key, got, err)
		}
	}
}

func TestConcurrentEditsWithSameKeyApplyOnce(t *testing.T) {
	w := newWorkspace(t)
	w.put("file", "a\n")
	var asking sync.WaitGroup
	request := edits(protocol.Edit{Path: "file", OldText: "a", NewText: "aa", ReplaceAll: true})
	for range 20 {
		asking.Go(func() {
			if _, err := w.Edit(t.Context(), "key", request); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	w.expect(map[string]string{"file": "aa\n"})
}

func TestWaitForPendingChangeEndsWithContext(t *testing.T) {
	w := newWorkspace(t)
	w.committer.changing <- struct{}{}
	defer func() { <-w.committer.changing }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Write(ctx, "", "file", "new"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOldestRecordsAreRemovedBeyondLimits(t *testing.T) {
	for name, tt := range map[string]struct{ records, size, kept int }{
		"by number": {maxRecords + 5, 100, maxRecords}, "by size": {5, maxRecordBytes / 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			content := []byte(`{"request":"` + strings.Repeat("x", tt.size) + `"}`)
			for i := range tt.records {
				check.OK(t, os.WriteFile(filepath.Join(w.state, "changes", fmt.Sprintf("key%04d%s", i, made)), content, 0o600))
			}
			w.open()
			_, err := w.Write(t.Context(), "newest", "file", "new")
			check.OK(t, err)
			kept, err := os.ReadDir(filepath.Join(w.state, "changes"))
			check.OK(t, err)
			check.Equal(t, "records", tt.kept, len(kept))
			for key, want := range map[string]state{"newest": made, "key0000": unseen} {
				got, _ := w.committer.journal.find(key)
				check.Equal(t, key, want, got)
			}
		})
	}
}

func TestRecordsThatAreNoFilesAreNotAwaited(t *testing.T) {
	w := newWorkspace(t)
	for _, name := range []string{"open" + string(begun), "asked" + string(made)} {
		check.OK(t, syscall.Mkfifo(filepath.Join(w.state, "changes", name), 0o600))
	}
	w.open()
	_, err := w.Write(t.Context(), "asked", "file", "new")
	refused(t, err, protocol.OutcomeUnknown, "")
	w.expect(map[string]string{})
}

func TestNewestRecordStaysWhateverTheClock(t *testing.T) {
	w := newWorkspace(t)
	later := time.Now().Add(time.Hour)
	for i := range maxRecords {
		name := filepath.Join(w.state, "changes", fmt.Sprintf("key%04d%s", i, made))
		check.OK(t, errors.Join(os.WriteFile(name, []byte("{}"), 0o600), os.Chtimes(name, later, later)))
	}
	_, err := w.Write(t.Context(), "newest", "file", "new")
	check.OK(t, err)
	got, _ := w.committer.journal.find("newest")
	check.Equal(t, "newest", made, got)
}

func TestUnwritableJournalFailsChange(t *testing.T) {
	w := newWorkspace(t)
	check.OK(t, os.RemoveAll(filepath.Join(w.state, "changes")))
	_, err := w.Write(t.Context(), "key", "file", "new")
	refused(t, err, protocol.NotFound, "journal of changes")
	w.expect(map[string]string{})
}
